#include "data/image/unlabelled.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <numeric>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "data/augment.h"
#include "data/image/scan.h"
#include "data/image/tar.h"
#include "data/shards/shards.h"
#include "data/spec.h"

namespace paceline::data {
namespace {

namespace fs = std::filesystem;

/// Files of one folder that follow one another share its entry.
ImageListing listing_of(std::span<const fs::path> files) {
  ImageListing listing;
  fs::path last;
  std::uint32_t directory = 0;
  for (const auto& file : files) {
    if (const auto parent = file.parent_path(); listing.size() == 0 || parent != last) {
      directory = listing.add_directory(parent.string());
      last = parent;
    }
    listing.add_image(directory, file.filename().string());
  }
  return listing;
}

/// Several stores, one behind another.
class JoinedStores final : public ImageStore {
 public:
  explicit JoinedStores(std::vector<std::shared_ptr<const ImageStore>> stores) : stores_(std::move(stores)) {
    std::int64_t end = 0;
    for (const auto& store : stores_) ends_.push_back(end += store->size());
  }
  [[nodiscard]] std::int64_t size() const override { return ends_.empty() ? 0 : ends_.back(); }
  [[nodiscard]] std::string name(std::int64_t index) const override {
    const auto [store, at] = find(index);
    return store->name(at);
  }
  [[nodiscard]] std::string path_below(std::int64_t index) const override {
    const auto [store, at] = find(index);
    return store->path_below(at);
  }
  [[nodiscard]] std::span<const std::uint8_t> bytes(std::int64_t index,
                                                    std::vector<std::uint8_t>& buffer) const override {
    const auto [store, at] = find(index);
    return store->bytes(at, buffer);
  }

 private:
  [[nodiscard]] std::pair<const ImageStore*, std::int64_t> find(std::int64_t index) const {
    const auto in = static_cast<std::size_t>(std::ranges::upper_bound(ends_, index) - ends_.begin());
    return {stores_[in].get(), in == 0 ? index : index - ends_[in - 1]};
  }

  std::vector<std::shared_ptr<const ImageStore>> stores_;
  std::vector<std::int64_t> ends_;
};

std::shared_ptr<const ImageStore> store_of(std::span<const fs::path> files,
                                           std::vector<std::shared_ptr<const ImageStore>> archives) {
  auto listed = store_of_files("", listing_of(files));
  if (archives.empty()) return listed;
  archives.insert(archives.begin(), std::move(listed));
  return std::make_shared<JoinedStores>(std::move(archives));
}

ImageDataset all_of(std::shared_ptr<const ImageStore> store, const ImageDataset::Seen& seen) {
  ArrangedPart all;
  all.images.resize(static_cast<std::size_t>(store->size()));
  std::iota(all.images.begin(), all.images.end(), std::uint32_t{0});
  all.labels.resize(all.images.size());
  return {std::move(store), std::move(all), seen};
}

void add_folder(const fs::path& folder, NamedImages& found) {
  try {
    const auto scan = scan_folder(folder);
    found.passed_over += scan.passed_over;
    for (std::size_t i = 0; i < scan.listing.size(); ++i)
      found.files.push_back(folder / scan.listing.path(i));
    if (scan.listing.size() == 0)
      found.faults.push_back(
          fmt::format("{}: there is no image in it or below it: no file whose name ends in {}",
                      folder.string(), kImageEndings));
  } catch (const base::Error& error) {
    found.faults.emplace_back(error.what());
  }
}

void add_archive(const fs::path& path, NamedImages& found) {
  try {
    auto archive = std::make_shared<TarStore>(path);
    if (archive->size() == 0)
      found.faults.push_back(fmt::format("{}: there is no image in it: no member whose name ends in {}",
                                         path.string(), kImageEndings));
    else
      found.archives.push_back(std::move(archive));
  } catch (const base::Error& error) {
    found.faults.emplace_back(error.what());
  }
}

}  // namespace

NamedImages find_images(std::span<const fs::path> given) {
  NamedImages found;
  for (auto path : given) {
    std::error_code unknown;
    if (const auto text = path.string(); !base::is_there(path)) {
      if (text.starts_with("shards:")) {
        for (const auto& shard : shard_paths(parse_spec(text).directory)) add_archive(shard, found);
        continue;
      }
      if (text.starts_with("folder:")) path = parse_spec(text).directory;
    }
    const auto status = fs::status(path, unknown);
    if (fs::is_directory(status))
      add_folder(path, found);
    else if (status.type() == fs::file_type::not_found)
      found.faults.push_back(fmt::format("{}: there is no such file or folder", path.string()));
    else if (ending_of(path.filename().string()) == ".tar")
      add_archive(path, found);
    else
      found.files.push_back(path);
  }
  return found;
}

UnlabelledImages::UnlabelledImages(std::span<const fs::path> files, const ImageFormat& format,
                                   int eval_resize, std::optional<Range> range,
                                   std::vector<std::shared_ptr<const ImageStore>> archives)
    : images_(
          all_of(store_of(files, std::move(archives)),
                 {.format = {format.height, format.width, 3}, .eval_resize = eval_resize, .range = range})),
      format_(format) {
  base::expects(format.channels == 3 || format.channels == 1, "images are of colours or grey");
}

std::int32_t UnlabelledImages::read(std::int64_t index, std::span<std::uint8_t> pixels) const {
  std::string why;
  try {
    if (format_.channels == 3) {
      images_.show(index, pixels);
    } else {
      std::vector<std::uint8_t> rgb(3 * pixels.size());
      images_.show(index, rgb);
      for (std::size_t i = 0; i < pixels.size(); ++i)
        pixels[i] = static_cast<std::uint8_t>(grey_of(&rgb[3 * i]));
    }
  } catch (const BrokenImage& broken) {
    why = fmt::format("{}: the image cannot be decoded: {}", sample_name(index), broken.what());
  } catch (const base::Error& error) {
    why = error.what();
  }
  if (!why.empty()) std::ranges::fill(pixels, std::uint8_t{0});
  const std::lock_guard lock(mutex_);
  if (why.empty())
    faults_.erase(index);
  else
    faults_[index] = std::move(why);
  return 0;
}

std::string UnlabelledImages::fault(std::int64_t index) const {
  const std::lock_guard lock(mutex_);
  const auto found = faults_.find(index);
  return found == faults_.end() ? "" : found->second;
}

}  // namespace paceline::data
