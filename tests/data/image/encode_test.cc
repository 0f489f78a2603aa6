#include "data/image/encode.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "data/image/decode.h"

namespace paceline::data {
namespace {

TEST(Encode, KeepsShapeAndColourOfAnImage) {
  struct Case {
    ImageFormat format;
    int height, width;  ///< of the JPEG
  };
  for (const auto& [format, height, width] : {Case{{32, 32, 3}, 32, 32}, Case{{28, 28, 1}, 28, 28},
                                              Case{{224, 112, 3}, 96, 48}, Case{{1, 400, 1}, 1, 96}}) {
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(format.bytes()));
    for (std::size_t i = 0; i < pixels.size(); ++i)
      pixels[i] = i % static_cast<std::size_t>(format.channels) == 0 ? 200 : 40;
    const std::string jpeg = small_jpeg(format, pixels, 96);
    ImageDecoder decoder;
    RgbImage image;
    const std::span bytes(reinterpret_cast<const std::uint8_t*>(jpeg.data()), jpeg.size());
    decoder.decode(bytes, decoder.read_header(bytes), 1, image);
    EXPECT_EQ(image.height, height);
    EXPECT_EQ(image.width, width);
    constexpr int kRounding = 6;  // of the colours at quality 88
    EXPECT_LE(std::abs(image.pixels[0] - 200), kRounding);
    EXPECT_LE(std::abs(image.pixels[1] - (format.channels == 3 ? 40 : 200)), kRounding);
  }
}

}  // namespace
}  // namespace paceline::data
