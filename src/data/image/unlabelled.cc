#include "data/image/unlabelled.h"

#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <system_error>
#include <utility>

#include "base/error.h"
#include "data/augment.h"
#include "data/image/scan.h"

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

ImageDataset::LabelledImages all_of(std::size_t count) {
  ImageDataset::LabelledImages all;
  for (std::size_t i = 0; i < count; ++i) all.images.push_back(static_cast<std::uint32_t>(i));
  all.labels.resize(count);
  return all;
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

}  // namespace

NamedImages find_images(std::span<const fs::path> given) {
  NamedImages found;
  for (const auto& path : given) {
    std::error_code unknown;
    const auto status = fs::status(path, unknown);
    if (fs::is_directory(status))
      add_folder(path, found);
    else if (status.type() == fs::file_type::not_found)
      found.faults.push_back(fmt::format("{}: there is no such file or folder", path.string()));
    else
      found.files.push_back(path);
  }
  return found;
}

UnlabelledImages::UnlabelledImages(std::span<const fs::path> files, const ImageFormat& format,
                                   int eval_resize, std::optional<Range> range)
    : images_(store_of_files("", listing_of(files)), all_of(files.size()),
              {.format = {format.height, format.width, 3}, .eval_resize = eval_resize, .range = range}),
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
    why = fmt::format("{}: the image cannot be decoded: {}", images_.name(index), broken.what());
  } catch (const base::Error& error) {
    why = error.what();
  }
  if (!why.empty()) std::ranges::fill(pixels, std::uint8_t{0});
  set_fault(index, std::move(why));
  return 0;
}

void UnlabelledImages::set_fault(std::int64_t index, std::string why) const {
  const std::lock_guard lock(mutex_);
  if (why.empty())
    faults_.erase(index);
  else
    faults_[index] = std::move(why);
}

std::string UnlabelledImages::fault(std::int64_t index) const {
  const std::lock_guard lock(mutex_);
  const auto found = faults_.find(index);
  return found == faults_.end() ? "" : found->second;
}

}  // namespace paceline::data
