#include "data/formats/folder.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "data/image/open.h"
#include "data/image/tar.h"

namespace paceline::data {
namespace {

namespace fs = std::filesystem;
using base::ErrorKind;

constexpr int kDeepest = 16;  // folders inside one another: more is a link that leads back

/// Lists the images below a directory, in the order of their paths.
class Walk {
 public:
  Walk(const fs::path& top, ImageListing& listing) : top_(top), listing_(listing) { enter(top, "", 0); }
  [[nodiscard]] std::int64_t passed_over() const { return passed_over_; }

 private:
  void enter(const fs::path& directory, const std::string& relative, int depth) {
    if (depth > kDeepest)
      base::fail(ErrorKind::data,
                 "{}: folders lie more than {} deep, perhaps a link that leads back; remove it",
                 directory.string(), kDeepest);
    std::vector<std::string> images, folders;
    std::error_code error;
    for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
         entry.increment(error)) {
      std::string name = entry->path().filename().string();
      std::error_code unknown;  // a link to nowhere is neither
      if (name.front() == '.') continue;
      if (entry->is_directory(unknown))
        folders.push_back(std::move(name));
      else if (is_image_name(name))
        images.push_back(std::move(name));
      else
        ++passed_over_;
    }
    if (error)
      base::fail(ErrorKind::data, "{}: the folder cannot be read: {}; check the path and its permissions",
                 directory.string(), error.message());
    std::sort(images.begin(), images.end());
    std::sort(folders.begin(), folders.end());
    if (!images.empty()) {
      const auto number = listing_.add_directory(relative);
      for (const auto& name : images) listing_.add_image(number, name);
    }
    for (const auto& name : folders)
      enter(directory / name, relative.empty() ? name : relative + "/" + name, depth + 1);
  }

  const fs::path& top_;
  ImageListing& listing_;
  std::int64_t passed_over_ = 0;
};

/// Files below a directory. Each read opens and closes its file: nothing is kept open for 200,000 of them.
class FolderStore final : public ImageStore {
 public:
  FolderStore(fs::path top, ImageListing listing) : top_(std::move(top)), listing_(std::move(listing)) {}

  [[nodiscard]] std::int64_t size() const override { return static_cast<std::int64_t>(listing_.size()); }
  [[nodiscard]] std::string name(std::int64_t index) const override { return path(index).string(); }

  [[nodiscard]] std::span<const std::uint8_t> bytes(std::int64_t index,
                                                    std::vector<std::uint8_t>& buffer) const override {
    const fs::path file = path(index);
    const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat status {};
    bool good = descriptor >= 0 && ::fstat(descriptor, &status) == 0;
    std::size_t got = 0;
    if (good) {
      const auto bytes = static_cast<std::size_t>(status.st_size);
      if (buffer.size() < bytes) buffer.resize(bytes);
      while (good && got < bytes) {
        const auto count = ::read(descriptor, buffer.data() + got, bytes - got);
        if (count == 0) break;  // shortened meanwhile: the decoder finds that
        good = count > 0;
        got += good ? static_cast<std::size_t>(count) : 0;
      }
    }
    const int error = errno;
    if (descriptor >= 0) ::close(descriptor);
    if (!good)
      base::fail(ErrorKind::data, "{}: cannot be read: {}; was it moved since the start?", file.string(),
                 std::strerror(error));
    return std::span<const std::uint8_t>(buffer).first(got);
  }

  [[nodiscard]] const ImageListing& listing() const { return listing_; }

 private:
  [[nodiscard]] fs::path path(std::int64_t index) const {
    return top_ / listing_.path(static_cast<std::size_t>(index));
  }

  fs::path top_;
  ImageListing listing_;
};

void note_passed_over(std::int64_t files, Source& source) {
  if (files > 0)
    source.notes.push_back(
        fmt::format("passed over: {} files whose names do not end in .jpg, .jpeg, .png or .ppm", files));
}

}  // namespace

Source open_folder(const Spec& spec) {
  const fs::path top = spec.directory;
  if (std::error_code unknown; fs::is_regular_file(top, unknown)) {
    const auto store = std::make_shared<TarStore>(top);
    Source source = open_images(spec, store, store->listing());
    source.name = "folder";
    note_passed_over(store->passed_over(), source);
    return source;
  }
  if (std::error_code unknown; !fs::is_directory(top, unknown))
    base::fail(
        ErrorKind::data,
        "data '{}': there is no folder and no tar archive {}; give the one that holds train/ and test/, or a "
        "folder for each class",
        spec.text, top.string());
  ImageListing listing;
  const Walk walk(top, listing);
  const auto passed_over = walk.passed_over();
  auto store = std::make_shared<FolderStore>(top, std::move(listing));
  Source source = open_images(spec, store, store->listing());
  source.name = "folder";
  note_passed_over(passed_over, source);
  return source;
}

}  // namespace paceline::data
