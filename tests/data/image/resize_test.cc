#include "data/image/resize.h"

#include <gtest/gtest.h>

#include <cmath>

#include "pictures.h"

namespace paceline::data {
namespace {

class Resize : public testing::TestWithParam<bool> {
 protected:
  static std::vector<std::uint8_t> resized(const RgbImage& image, const Box& box, int height, int width) {
    std::vector<std::uint8_t> dst(static_cast<std::size_t>(3 * height * width), 0xcd);
    Resizer resizer;
    if (GetParam())
      resizer.resize_as_pil(image, box, height, width, dst);
    else
      resizer.resize(image, box, height, width, dst);
    return dst;
  }
};
INSTANTIATE_TEST_SUITE_P(Ways, Resize, testing::Bool(),
                         [](const auto& way) { return std::string(way.param ? "AsPil" : "Fast"); });

Box whole(const RgbImage& image) {
  return {.height = static_cast<double>(image.height), .width = static_cast<double>(image.width)};
}

TEST_P(Resize, KeepsAnImageOfTheSameSize) {
  const RgbImage image = picture(13, 17, 5);
  EXPECT_EQ(resized(image, whole(image), 13, 17), image.pixels);
}

TEST_P(Resize, KeepsAPlainAreaAtAnySize) {
  for (const int value : {0, 1, 127, 254, 255}) {
    const auto byte = static_cast<std::uint8_t>(value);
    const RgbImage image = painted(31, 47, [&](int, int) { return Rgb{byte, byte, byte}; });
    for (const auto& [height, width] : {std::pair{1, 1}, {7, 90}, {31, 46}, {200, 3}})
      for (const auto out :
           resized(image, {.top = 1.3, .left = 2.7, .height = 20.1, .width = 33.3}, height, width))
        EXPECT_EQ(out, byte);
  }
}

// Vectors of eight bytes are read: sanitizers see what lies behind the last pixel.
TEST_P(Resize, ReadsNothingBehindTheSmallestImages) {
  for (int height = 1; height < 6; ++height)
    for (int width = 1; width < 6; ++width) {
      const RgbImage image = painted(height, width, [](int, int) { return Rgb{9, 99, 199}; });
      for (const int side : {1, 2, 7})
        EXPECT_EQ(resized(image, whole(image), side, side), painted(side, side, [](int, int) {
                                                              return Rgb{9, 99, 199};
                                                            }).pixels);
    }
}

// The closed form, in double: the mean under the triangle, clipped at the edges of the image.
double triangle_mean(const RgbImage& image, const Box& box, int height, int width, int y, int x,
                     int channel) {
  const auto weights = [](double begin, double length, int outputs, int inputs, int at) {
    const double scale = length / outputs, reach = std::max(1.0, scale), centre = begin + (at + 0.5) * scale;
    std::vector<double> result(static_cast<std::size_t>(inputs));
    double total = 0;
    for (int i = 0; i < inputs; ++i)
      total += result[static_cast<std::size_t>(i)] = std::max(0.0, 1 - std::abs(i + 0.5 - centre) / reach);
    for (auto& weight : result) weight /= total;
    return result;
  };
  const auto rows = weights(box.top, box.height, height, image.height, y);
  const auto columns = weights(box.left, box.width, width, image.width, x);
  double sum = 0;
  for (std::size_t r = 0; r < rows.size(); ++r)
    for (std::size_t c = 0; c < columns.size(); ++c)
      sum += rows[r] * columns[c] *
             image.pixels[(r * columns.size() + c) * 3 + static_cast<std::size_t>(channel)];
  return sum;
}

TEST_P(Resize, AveragesUnderATriangle) {
  const RgbImage image = painted(29, 37, [](int y, int x) {
    return Rgb{static_cast<std::uint8_t>((y * 83 + x * 47) % 256), static_cast<std::uint8_t>((y * x) % 256),
               static_cast<std::uint8_t>(255 * ((x / 3 + y / 2) % 2))};
  });
  const Box boxes[] = {whole(image),
                       {.top = 3, .left = 5, .height = 20, .width = 11},
                       {.top = 0.4, .left = 10.25, .height = 28.5, .width = 26.6}};
  for (const Box& box : boxes)
    for (const auto& [height, width] : {std::pair{5, 4}, {29, 10}, {40, 61}, {1, 1}}) {
      const auto got = resized(image, box, height, width);
      std::size_t at = 0;
      for (int y = 0; y < height; ++y)
        for (int x = 0; x < width; ++x)
          for (int c = 0; c < 3; ++c)  // two roundings to a byte, and weights of 14 bits
            ASSERT_NEAR(got[at++], triangle_mean(image, box, height, width, y, x, c), 1.2)
                << height << "x" << width << " at " << y << ", " << x;
    }
}

}  // namespace
}  // namespace paceline::data
