/// Any bytes as a folder's list of images: no path leads out of the folder, and each image has one.

#include <cstdlib>
#include <string>

#include "data/image/scan.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace paceline;
  const auto scan = data::manifest_from({reinterpret_cast<const char*>(data), bytes});
  if (!scan) return 0;
  std::size_t images = 0;
  for (const auto& folder : scan->folders) images += folder.images;
  if (images != scan->listing.size()) std::abort();
  for (std::size_t i = 0; i < images; ++i) {
    std::string path(1, '/');
    path.append(scan->listing.path(i)).push_back('/');
    if (path.starts_with("//") || path.find("/../") != std::string::npos) std::abort();
  }
  return 0;
}
