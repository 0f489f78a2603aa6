#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "data/image/listing.h"

namespace paceline::data {
namespace {

/// Whether files of this ending may be images that are not read. Others lie beside images and are none: a
/// table, a checkpoint, a log, what a program or a file server keeps for itself.
bool may_be_images(std::string_view ending) {
  constexpr auto kImages = std::to_array<std::string_view>(
      {"",     ".webp", ".gif", ".bmp", ".tif", ".tiff", ".heic", ".heif", ".avif", ".jp2", ".j2k",
       ".jxl", ".jfif", ".jpe", ".pgm", ".pbm", ".pnm",  ".tga",  ".ico",  ".svg",  ".psd", ".exr",
       ".hdr", ".dcm",  ".nii", ".raw", ".cr2", ".cr3",  ".nef",  ".arw",  ".dng",  ".orf"});
  return std::ranges::find(kImages, ending) != kImages.end();
}

/// Names at most eight folders, each with its files: "dogs (10 files that end in .webp)".
std::string named_folders(const std::vector<const PassedOver*>& folders) {
  constexpr std::size_t kMost = 8;
  std::vector<std::string> texts;
  for (std::size_t i = 0; i < std::min(kMost, folders.size()); ++i) {
    const auto& [folder, files, ending] = *folders[i];
    texts.push_back(fmt::format("'{}' ({}{})", folder, base::counted(files, "file"),
                                ending.empty() ? " without an ending" : ", most in " + ending));
  }
  if (folders.size() > kMost) texts.push_back(fmt::format("{} more", folders.size() - kMost));
  return base::joined(texts, ", ");
}

/// Images of each folder that holds some; these folders with all above them, and those directly above.
struct ImageFolders {
  std::map<std::string, std::int64_t, std::less<>> images;
  std::set<std::string, std::less<>> with_images, parents;
};

/// Whether it lies in a part that is beside others with images, and in no class.
bool lies_in_a_part(std::string_view path, const ImageFolders& folders) {
  for (auto above = before_last(path); !above.empty(); above = before_last(above))
    if (folders.images.contains(above)) return false;
  for (auto inner = path; !inner.empty(); inner = before_last(inner))
    if (split_of(last_part(inner)) && folders.with_images.contains(before_last(inner))) return true;
  return false;
}

ImageFolders folders_of(const ImageListing& listing) {
  ImageFolders folders;
  for (std::size_t i = 0; i < listing.size(); ++i)
    ++folders.images[listing.directories()[listing.directory(i)]];
  for (const auto& [path, count] : folders.images) {
    if (!path.empty()) folders.parents.emplace(before_last(path));
    for (std::string_view above = path; folders.with_images.emplace(above).second && !above.empty();)
      above = before_last(above);
  }
  return folders;
}

}  // namespace

std::string ending_of(std::string_view name) {
  const auto dot = name.rfind('.');
  return dot == std::string_view::npos || dot == 0 ? "" : base::lower_case(name.substr(dot));
}

std::int64_t PassedOverCount::files() const {
  std::int64_t files = 0;
  for (const auto& [ending, count] : files_of_) files += count;
  return files;
}

PassedOver PassedOverCount::in(std::string folder) const {
  const auto most = std::ranges::max_element(files_of_, {}, [](const auto& one) { return one.second; });
  return {
      .folder = std::move(folder), .files = files(), .ending = most == files_of_.end() ? "" : most->first};
}

std::vector<std::string> check_passed_over(const std::string& spec, const ImageListing& listing,
                                           std::span<const PassedOver> passed) {
  const auto folders = folders_of(listing);
  std::vector<const PassedOver*> lost, mostly;
  for (const auto& one : passed) {
    if (one.folder.empty() || one.files == 0 || !may_be_images(one.ending)) continue;
    const auto images = folders.images.find(one.folder);
    if (images != folders.images.end()) {
      if (one.files > images->second) mostly.push_back(&one);
    } else if (!folders.with_images.contains(one.folder) &&
               (folders.parents.contains(before_last(one.folder)) || lies_in_a_part(one.folder, folders))) {
      lost.push_back(&one);
    }
  }
  if (!lost.empty() && !folders.images.empty())
    base::fail(base::ErrorKind::data,
               "data '{}': {} would be no class, since files are images if they end in "
               "{}: {}; write these files as JPEG or PNG, or move the folder{} away",
               spec, lost.size() == 1 ? "a folder beside the classes" : "folders beside the classes",
               kImageEndings, named_folders(lost), lost.size() == 1 ? "" : "s");
  if (mostly.empty()) return {};
  return {fmt::format("most files of these classes are skipped, since they do not end as images do: {}",
                      named_folders(mostly))};
}

}  // namespace paceline::data
