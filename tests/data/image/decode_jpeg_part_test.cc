#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "data/dataset.h"
#include "data/image/decode.h"
#include "data/image/resize.h"
#include "pictures.h"

namespace paceline::data {
namespace {

/// A box inside of an image, some of its whole height or width.
Box random_box(int height, int width, std::mt19937& draw) {
  const auto side = [&](int all) {
    const int length = draw() % 4 == 0 ? all : 1 + static_cast<int>(draw() % static_cast<unsigned>(all));
    const int begin = static_cast<int>(draw() % static_cast<unsigned>(all - length + 1));
    return std::pair(begin, length);
  };
  const auto [top, tall] = side(height);
  const auto [left, wide] = side(width);
  return {.top = top + 0.0, .left = left + 0.0, .height = tall + 0.0, .width = wide + 0.0};
}

/// The part of `image` that `box` covers, in pixels that are `divisor` times as large.
void expect_same(const RgbImage& image, const RgbImage& part, const PartOf& place, const Box& box,
                 int divisor) {
  EXPECT_EQ(place.height, image.height);
  EXPECT_EQ(place.width, image.width);
  const auto first = [&](double at) { return static_cast<int>(at) / divisor; };
  const auto last = [&](double at, int all) { return std::min(all - 1, static_cast<int>(at) / divisor); };
  for (int y = first(box.top); y <= last(box.top + box.height - 1, image.height); ++y)
    for (int x = first(box.left); x <= last(box.left + box.width - 1, image.width); ++x) {
      ASSERT_TRUE(y >= place.top && y < place.top + part.height && x >= place.left &&
                  x < place.left + part.width);
      for (int c = 0; c < 3; ++c)
        ASSERT_EQ(
            part.pixels[static_cast<std::size_t>(3 * ((y - place.top) * part.width + x - place.left) + c)],
            image.pixels[static_cast<std::size_t>(3 * (y * image.width + x) + c)])
            << "row " << y << ", column " << x;
    }
}

// At the edges of a part libjpeg interpolates colours otherwise: those pixels must not be used.
TEST(DecodeJpegPart, HasThePixelsOfTheWholeImage) {
  std::mt19937 draw(7);
  ImageDecoder decoder;
  RgbImage whole, part;
  for (const auto& [height, width] : {std::pair{97, 131}, {200, 64}, {17, 300}, {8, 8}, {1, 1}})
    for (const int colours : {TJSAMP_444, TJSAMP_422, TJSAMP_420, TJSAMP_440, TJSAMP_411, TJSAMP_GRAY})
      for (const int flags : {0, TJFLAG_PROGRESSIVE}) {
        const Bytes file = jpeg(picture(height, width, static_cast<int>(draw() % 100)), colours, flags);
        const ImageHeader header = decoder.read_header(file);
        for (const int divisor : {1, 2, 4, 8}) {
          decoder.decode(file, header, 1.0 / divisor, whole);
          for (int i = 0; i < 8; ++i) {
            const Box box = random_box(height, width, draw);
            const PartOf place = decoder.decode_part(file, header, 1.0 / divisor, box, part);
            expect_same(whole, part, place, box, divisor);
            if (testing::Test::HasFatalFailure())
              FAIL() << height << "x" << width << " " << colours << " / " << divisor;
          }
        }
      }
}

TEST(DecodeJpegPart, LeavesOutWhatIsBesideIt) {
  ImageDecoder decoder;
  RgbImage part;
  const Bytes file = jpeg(picture(400, 500), TJSAMP_420);
  const Box box{.top = 200, .left = 100, .height = 50, .width = 80};
  (void)decoder.decode_part(file, decoder.read_header(file), 1, box, part);
  EXPECT_LE(part.height, 50 + 2 * 16 + 2);
  EXPECT_LE(part.width, 80 + 4 * 16);
}

// What is trained on stays the same bits.
TEST(DecodeJpegPart, IsResizedAsTheWholeImageIs) {
  std::mt19937 draw(3);
  ImageDecoder decoder;
  Resizer resizer;
  RgbImage whole, part;
  const Bytes file = jpeg(picture(230, 310, 4), TJSAMP_420);
  const ImageHeader header = decoder.read_header(file);
  decoder.decode(file, header, 1, whole);
  for (int i = 0; i < 200; ++i) {
    const Box box = random_box(230, 310, draw);
    const int height = 1 + static_cast<int>(draw() % 96), width = 1 + static_cast<int>(draw() % 96);
    const PartOf place = decoder.decode_part(file, header, 1, with_surroundings(box, height, width), part);
    Bytes of_whole(static_cast<std::size_t>(3 * height * width)), of_part(of_whole.size());
    resizer.resize(whole, box, height, width, of_whole);
    resizer.resize(part, place, box, height, width, of_part);
    ASSERT_EQ(of_part, of_whole) << box.top << " " << box.left << " " << box.height << " " << box.width;
  }
}

TEST(DecodeJpegPart, NamesDamageAsDecodingDoes) {
  ImageDecoder decoder;
  RgbImage part;
  Box box{.top = 0, .left = 0, .height = 10, .width = 10};
  const Bytes whole = jpeg(picture(200, 100), TJSAMP_420);
  const auto reason = [&](const Bytes& file) {
    try {
      (void)decoder.decode_part(file, decoder.read_header(file), 1, box, part);
    } catch (const BrokenImage& broken) {
      return std::string(broken.what());
    }
    return std::string();
  };
  Bytes cut = whole;
  cut.resize(cut.size() * 3 / 4);  // far below the part
  EXPECT_THAT(reason(cut), testing::HasSubstr("JPEG"));
  EXPECT_EQ(reason(whole), "") << "the decoder goes on";
  Bytes damaged = whole;
  for (std::size_t i = damaged.size() / 2; i < damaged.size() / 2 + 40; ++i) damaged[i] = 0xff;
  EXPECT_EQ(reason(damaged), "") << "below the part, where only whole decoding looks";
  box.top = 180;
  EXPECT_THAT(reason(damaged), testing::HasSubstr("JPEG"));
  EXPECT_EQ(reason(whole), "");
}

}  // namespace
}  // namespace paceline::data
