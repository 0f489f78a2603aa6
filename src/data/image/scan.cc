#include "data/image/scan.h"

#include <sys/stat.h>

#include <algorithm>
#include <system_error>

#include "base/error.h"

namespace paceline::data {
namespace {

namespace fs = std::filesystem;
using base::ErrorKind;

constexpr int kDeepest = 16;  // nested folders; more means a link that leads back

void enter(const fs::path& directory, const std::string& relative, int depth, FolderScan& scan) {
  if (depth > kDeepest)
    base::fail(ErrorKind::data,
               "{}: folders are nested more than {} deep, perhaps by a link to a folder above; remove it",
               directory.string(), kDeepest);
  // The time is read before the names: a change in between makes the manifest outdated, not wrong.
  scan.folders.push_back({.path = relative, .modified_ns = modified_ns(directory)});
  const std::size_t self = scan.folders.size() - 1;
  std::vector<std::string> images, folders;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end; entry.increment(error)) {
    std::string name = entry->path().filename().string();
    std::error_code unknown;  // a dangling link is neither
    if (name.front() == '.') continue;
    if (entry->is_directory(unknown))
      folders.push_back(std::move(name));
    else if (is_image_name(name))
      images.push_back(std::move(name));
    else if (name != kManifestName || depth > 0)
      ++scan.passed_over;
  }
  if (error)
    base::fail(ErrorKind::data, "{}: the folder cannot be read: {}; check the path and its permissions",
               directory.string(), error.message());
  std::sort(images.begin(), images.end());
  std::sort(folders.begin(), folders.end());
  scan.folders[self].images = images.size();
  if (!images.empty()) {
    const auto number = scan.listing.add_directory(relative);
    for (const auto& name : images) scan.listing.add_image(number, name);
  }
  images = {};
  for (const auto& name : folders)
    enter(directory / name, relative.empty() ? name : relative + "/" + name, depth + 1, scan);
}

}  // namespace

std::int64_t modified_ns(const fs::path& folder) {
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) return -1;
  return std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
}

FolderScan scan_folder(const fs::path& top) {
  FolderScan scan;
  enter(top, "", 0, scan);
  scan.listing.shrink();
  return scan;
}

}  // namespace paceline::data
