#include "data/formats/formats.h"

#include <fcntl.h>
#include <fmt/core.h>

#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "data/file_bytes.h"
#include "data/image/dataset.h"
#include "data/image/scan.h"
#include "data/image/tar.h"

namespace paceline::data {
namespace {

namespace fs = std::filesystem;
using base::ErrorKind;

/// Files below a directory. Each read opens and closes its file: 200,000 files cannot all be kept open.
class FolderStore final : public ImageStore {
 public:
  FolderStore(fs::path top, ImageListing listing) : top_(std::move(top)), listing_(std::move(listing)) {}

  [[nodiscard]] std::int64_t size() const override { return static_cast<std::int64_t>(listing_.size()); }
  [[nodiscard]] std::string name(std::int64_t index) const override { return path(index).string(); }
  [[nodiscard]] std::string path_below(std::int64_t index) const override {
    return listing_.path(static_cast<std::size_t>(index));
  }

  [[nodiscard]] std::span<const std::uint8_t> bytes(std::int64_t index,
                                                    std::vector<std::uint8_t>& buffer) const override {
    const fs::path file = path(index);
    // O_NONBLOCK: a pipe with the name of an image would block for ever.
    const base::Descriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
    struct stat status {};
    const bool is_open = opened.is_open() && ::fstat(opened.get(), &status) == 0;
    if (is_open && !S_ISREG(status.st_mode))
      base::fail(ErrorKind::data, "{}: is not a regular file; remove it", file.string());
    std::int64_t got = -1;
    if (is_open) {
      const auto bytes = static_cast<std::size_t>(status.st_size);
      if (buffer.size() < bytes) buffer.resize(bytes);
      got = read_at(opened.get(), 0, std::span(buffer).first(bytes));
    }
    if (got < 0)
      base::fail(ErrorKind::data, "{}: cannot be read: {}; was it moved since it was listed?", file.string(),
                 std::strerror(errno));
    // Fewer than the file had when it was opened: it was shortened meanwhile, which the decoder notices.
    return std::span<const std::uint8_t>(buffer).first(static_cast<std::size_t>(got));
  }

  [[nodiscard]] std::int64_t stored_bytes(std::int64_t index) const override {
    std::error_code error;
    const auto bytes = fs::file_size(path(index), error);
    return error ? 0 : static_cast<std::int64_t>(bytes);
  }

  [[nodiscard]] const ImageListing& listing() const { return listing_; }

 private:
  [[nodiscard]] fs::path path(std::int64_t index) const {
    return top_ / listing_.path(static_cast<std::size_t>(index));
  }

  fs::path top_;
  ImageListing listing_;
};

/// The images of `store`, in which the walk left out the files of `passed`, `files` in all.
Source open_listed(const Spec& spec, std::shared_ptr<const ImageStore> store, const ImageListing& listing,
                   std::span<const PassedOver> passed, std::int64_t files) {
  // Where a table says the classes, folders are none.
  auto notes = spec.options.contains("labels") ? std::vector<std::string>()
                                               : check_passed_over(spec.text, listing, passed);
  Source source = open_images(spec, std::move(store), listing);
  source.notes.insert(source.notes.end(), notes.begin(), notes.end());
  if (files > 0)
    source.notes.push_back(fmt::format("skipped: {} not end in {}",
                                       base::counted(files, "file whose name does", "files whose names do"),
                                       kImageEndings));
  return source;
}

}  // namespace

std::shared_ptr<const ImageStore> store_of_files(fs::path top, ImageListing listing) {
  return std::make_shared<FolderStore>(std::move(top), std::move(listing));
}

Source open_folder(const Spec& spec) {
  const fs::path top = spec.directory;
  if (base::is_file(top)) {
    const auto store = std::make_shared<TarStore>(top);
    Source source = open_listed(spec, store, store->listing(), store->passed_over_in(), store->passed_over());
    if (store->dangling_links() > 0)
      source.notes.push_back(fmt::format(
          "left out: {} links whose targets are not in the archive, the first {}; tar --dereference packs "
          "the files that links point to",
          store->dangling_links(), store->first_dangling_link()));
    return source;
  }
  if (!base::is_folder(top))
    base::fail(
        ErrorKind::data,
        "data '{}': there is no folder and no tar archive {}; give the one that holds train/ and test/, or a "
        "folder for each class",
        spec.text, top.string());
  std::string why_not;
  auto scan = read_manifest(top, why_not);
  if (!scan) scan = scan_folder(top);
  const auto store = std::make_shared<FolderStore>(top, std::move(scan->listing));
  Source source = open_listed(spec, store, store->listing(), scan->passed_over_in, scan->passed_over);
  if (!why_not.empty())
    source.notes.push_back(fmt::format(
        "the manifest was not used: {}; 'paceline data manifest {}' writes a new one", why_not, spec.text));
  return source;
}

}  // namespace paceline::data
