#pragma once

/// Small pictures made in the test: encoded by the same libraries' encoders, or by hand where they cannot.

#include <spng.h>
#include <turbojpeg.h>

#include <cstdint>
#include <functional>

#include "../files.h"
#include "data/image/decode.h"

namespace paceline::data {

using Rgb = std::array<std::uint8_t, 3>;

/// A picture painted pixel by pixel.
inline RgbImage painted(int height, int width, const std::function<Rgb(int y, int x)>& paint) {
  RgbImage image{.height = height, .width = width, .pixels = {}};
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x)
      for (const auto value : paint(y, x)) image.pixels.push_back(value);
  return image;
}
/// A smooth picture that differs with `seed`, so that a JPEG of it is close to it.
inline RgbImage picture(int height, int width, int seed = 0) {
  return painted(height, width, [&](int y, int x) {
    return Rgb{static_cast<std::uint8_t>(40 + 150 * y / height),
               static_cast<std::uint8_t>(30 + 170 * x / width), static_cast<std::uint8_t>(37 * seed % 251)};
  });
}

inline Bytes jpeg(const RgbImage& image, int subsampling = TJSAMP_444, int flags = 0, int quality = 95) {
  tjhandle handle = tjInitCompress();
  unsigned char* data = nullptr;
  unsigned long bytes = 0;
  EXPECT_EQ(tjCompress2(handle, image.pixels.data(), image.width, 0, image.height, TJPF_RGB, &data, &bytes,
                        subsampling, quality, flags),
            0)
      << tjGetErrorStr2(handle);
  Bytes result(data, data + bytes);
  tjFree(data);
  tjDestroy(handle);
  return result;
}

/// CMYK as Adobe's programs write it: 255 is no ink.
inline Bytes jpeg_cmyk(int height, int width, const std::array<std::uint8_t, 4>& inverted) {
  std::vector<std::uint8_t> pixels;
  for (int i = 0; i < height * width; ++i) pixels.insert(pixels.end(), inverted.begin(), inverted.end());
  tjhandle handle = tjInitCompress();
  unsigned char* data = nullptr;
  unsigned long bytes = 0;
  EXPECT_EQ(tjCompress2(handle, pixels.data(), width, 0, height, TJPF_CMYK, &data, &bytes, TJSAMP_444, 95, 0),
            0);
  Bytes result(data, data + bytes);
  tjFree(data);
  tjDestroy(handle);
  return result;
}

/// A PNG of raw samples in spng's terms; `palette` for indexed ones.
inline Bytes png(const spng_ihdr& ihdr, const Bytes& samples, const spng_plte* palette = nullptr) {
  spng_ctx* context = spng_ctx_new(SPNG_CTX_ENCODER);
  spng_set_option(context, SPNG_ENCODE_TO_BUFFER, 1);
  spng_ihdr header = ihdr;
  EXPECT_EQ(spng_set_ihdr(context, &header), 0);
  if (palette) {
    spng_plte copy = *palette;
    EXPECT_EQ(spng_set_plte(context, &copy), 0);
  }
  const int status =
      spng_encode_image(context, samples.data(), samples.size(), SPNG_FMT_PNG, SPNG_ENCODE_FINALIZE);
  EXPECT_EQ(status, 0) << spng_strerror(status);
  std::size_t bytes = 0;
  int error = 0;
  void* data = spng_get_png_buffer(context, &bytes, &error);
  EXPECT_EQ(error, 0);
  Bytes result(static_cast<std::uint8_t*>(data), static_cast<std::uint8_t*>(data) + bytes);
  std::free(data);
  spng_ctx_free(context);
  return result;
}
inline spng_ihdr ihdr(int height, int width, int colour_type, int depth = 8, int interlace = 0) {
  return {.width = static_cast<std::uint32_t>(width),
          .height = static_cast<std::uint32_t>(height),
          .bit_depth = static_cast<std::uint8_t>(depth),
          .color_type = static_cast<std::uint8_t>(colour_type),
          .interlace_method = static_cast<std::uint8_t>(interlace)};
}
inline Bytes png(const RgbImage& image) {
  return png(ihdr(image.height, image.width, SPNG_COLOR_TYPE_TRUECOLOR), image.pixels);
}

inline RgbImage decoded(const Bytes& bytes, double least_scale = 1) {
  ImageDecoder decoder;
  RgbImage image;
  decoder.decode(bytes, decoder.read_header(bytes), least_scale, image);
  return image;
}

/// "" if nothing is wrong.
inline std::string reason_of(const Bytes& bytes) {
  try {
    (void)decoded(bytes);
  } catch (const BrokenImage& broken) {
    return broken.what();
  }
  return "";
}

}  // namespace paceline::data
