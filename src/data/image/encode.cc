#include "data/image/encode.h"

#include <turbojpeg.h>

#include <algorithm>
#include <memory>
#include <vector>

#include "base/error.h"
#include "data/image/resize.h"

namespace paceline::data {
namespace {

struct TurboCloser {
  void operator()(void* handle) const { tjDestroy(handle); }
};

}  // namespace

std::string small_jpeg(const ImageFormat& format, std::span<const std::uint8_t> pixels, int side) {
  base::expects(format.channels == 1 || format.channels == 3, "an image has 1 or 3 channels");
  RgbImage image{.height = format.height, .width = format.width, .pixels = {}};
  image.pixels.reserve(3 * pixels.size() / static_cast<std::size_t>(format.channels));
  for (std::size_t i = 0; i < pixels.size(); ++i)
    image.pixels.insert(image.pixels.end(), format.channels == 1 ? 3 : 1, pixels[i]);
  const double scale = std::min(1.0, static_cast<double>(side) / std::max(format.height, format.width));
  const int height = std::max(1, static_cast<int>(format.height * scale));
  const int width = std::max(1, static_cast<int>(format.width * scale));
  std::vector<std::uint8_t> small(3 * static_cast<std::size_t>(height) * static_cast<std::size_t>(width));
  const Box whole{.height = static_cast<double>(format.height), .width = static_cast<double>(format.width)};
  Resizer().resize(image, whole, height, width, small);

  const std::unique_ptr<void, TurboCloser> handle(tjInitCompress());
  base::expects(handle != nullptr, "libjpeg-turbo has the memory for a compressor");
  constexpr int kQuality = 88;
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  const int failed = tjCompress2(handle.get(), small.data(), width, 0, height, TJPF_RGB, &bytes, &size,
                                 TJSAMP_444, kQuality, TJFLAG_ACCURATEDCT);
  const std::unique_ptr<unsigned char, void (*)(unsigned char*)> owner(bytes, tjFree);
  base::expects(failed == 0, "libjpeg-turbo compresses any image");
  return {reinterpret_cast<const char*>(bytes), size};
}

}  // namespace paceline::data
