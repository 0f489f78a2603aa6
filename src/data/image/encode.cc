#include "data/image/encode.h"

#include <spng.h>
#include <turbojpeg.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "base/error.h"
#include "data/image/resize.h"

namespace paceline::data {
namespace {

/// `image`, smaller by `scale` <= 1, as a JPEG. `colours`: TJSAMP_*.
std::vector<std::uint8_t> jpeg_of(const RgbImage& image, double scale, int quality, int colours) {
  const int height = std::max(1, static_cast<int>(image.height * scale));
  const int width = std::max(1, static_cast<int>(image.width * scale));
  std::vector<std::uint8_t> small(3 * static_cast<std::size_t>(height) * static_cast<std::size_t>(width));
  const Box whole{.height = static_cast<double>(image.height), .width = static_cast<double>(image.width)};
  Resizer().resize(image, whole, height, width, small);

  const std::unique_ptr<void, JpegCloser> handle(tjInitCompress());
  base::expects(handle != nullptr, "libjpeg-turbo has the memory for a compressor");
  unsigned char* bytes = nullptr;
  unsigned long size = 0;
  const int failed = tjCompress2(handle.get(), small.data(), width, 0, height, TJPF_RGB, &bytes, &size,
                                 colours, quality, TJFLAG_ACCURATEDCT);
  const std::unique_ptr<unsigned char, void (*)(unsigned char*)> owner(bytes, tjFree);
  base::expects(failed == 0, "libjpeg-turbo compresses any image");
  return {bytes, bytes + size};
}

}  // namespace

std::string small_jpeg(const ImageFormat& format, std::span<const std::uint8_t> pixels, int side) {
  base::expects(format.channels == 1 || format.channels == 3, "an image has 1 or 3 channels");
  RgbImage image{.height = format.height, .width = format.width, .pixels = {}};
  image.pixels.reserve(3 * pixels.size() / static_cast<std::size_t>(format.channels));
  for (std::size_t i = 0; i < pixels.size(); ++i)
    image.pixels.insert(image.pixels.end(), format.channels == 1 ? 3 : 1, pixels[i]);
  constexpr int kQuality = 88;
  const double scale = std::min(1.0, static_cast<double>(side) / std::max(format.height, format.width));
  const auto jpeg = jpeg_of(image, scale, kQuality, TJSAMP_444);
  return {jpeg.begin(), jpeg.end()};
}

std::vector<std::uint8_t> scaled_jpeg(const RgbImage& image, int side, int quality) {
  const int longer = std::max(image.height, image.width);
  return jpeg_of(image, std::min(1.0, static_cast<double>(side) / longer), quality, TJSAMP_420);
}

std::vector<std::uint8_t> to_png(const ImageFormat& format, std::span<const std::uint8_t> pixels) {
  base::expects(format.channels == 1 || format.channels == 3, "an image has 1 or 3 channels");
  base::expects(static_cast<std::int64_t>(pixels.size()) == format.bytes(), "pixels hold one image");
  const std::unique_ptr<spng_ctx, void (*)(spng_ctx*)> context(spng_ctx_new(SPNG_CTX_ENCODER), spng_ctx_free);
  base::expects(context != nullptr, "spng has the memory for an encoder");
  spng_set_option(context.get(), SPNG_ENCODE_TO_BUFFER, 1);
  spng_ihdr header{};
  header.height = static_cast<std::uint32_t>(format.height);
  header.width = static_cast<std::uint32_t>(format.width);
  header.bit_depth = 8;
  header.color_type = format.channels == 1 ? SPNG_COLOR_TYPE_GRAYSCALE : SPNG_COLOR_TYPE_TRUECOLOR;
  int failed = spng_set_ihdr(context.get(), &header);
  if (failed == 0)
    failed =
        spng_encode_image(context.get(), pixels.data(), pixels.size(), SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE);
  std::size_t size = 0;
  const std::unique_ptr<void, void (*)(void*)> owner(spng_get_png_buffer(context.get(), &size, &failed),
                                                     std::free);
  base::expects(failed == 0 && owner != nullptr, "spng encodes any image");
  const auto* const bytes = static_cast<const std::uint8_t*>(owner.get());
  return {bytes, bytes + size};
}

}  // namespace paceline::data
