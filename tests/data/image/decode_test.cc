#include "data/image/decode.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "pictures.h"

namespace paceline::data {
namespace {

using testing::HasSubstr;

double mean_difference(const RgbImage& a, const RgbImage& b) {
  EXPECT_EQ(a.pixels.size(), b.pixels.size());
  double sum = 0;
  for (std::size_t i = 0; i < a.pixels.size(); ++i) sum += std::abs(a.pixels[i] - b.pixels[i]);
  return sum / static_cast<double>(a.pixels.size());
}

TEST(Decode, GivesAPngBackAndAJpegNearly) {
  for (const auto& [height, width] : {std::pair{1, 1}, {31, 23}, {64, 48}, {100, 333}}) {
    const RgbImage image = picture(height, width, 3);
    EXPECT_EQ(decoded(png(image)).pixels, image.pixels) << height << "x" << width;
    for (const int subsampling : {TJSAMP_444, TJSAMP_420, TJSAMP_422})
      for (const int flags : {0, TJFLAG_PROGRESSIVE}) {
        const RgbImage back = decoded(jpeg(image, subsampling, flags));
        EXPECT_EQ(back.height, height);
        EXPECT_EQ(back.width, width);
        EXPECT_LT(mean_difference(back, image), 3) << height << "x" << width << " " << subsampling;
      }
  }
}

TEST(Decode, GivesEveryColourModeAsRgb) {
  const auto expect_plain = [](const Bytes& file, const Rgb& colour, const char* named, int near = 0) {
    EXPECT_STREQ(ImageDecoder().read_header(file).colour, named);
    const RgbImage image = decoded(file);
    ASSERT_EQ(image.pixels.size(), 8u * 8u * 3u) << named;
    for (std::size_t i = 0; i < image.pixels.size(); ++i)
      EXPECT_NEAR(image.pixels[i], colour[i % 3], near) << named;
  };
  const auto plain = [](std::initializer_list<std::uint8_t> sample) {
    Bytes samples;
    for (int i = 0; i < 64; ++i) samples.insert(samples.end(), sample);
    return samples;
  };
  expect_plain(jpeg(painted(8, 8,
                            [](int, int) {
                              return Rgb{90, 90, 90};
                            }),
                    TJSAMP_GRAY),
               {90, 90, 90}, "grey", 2);
  expect_plain(jpeg_cmyk(8, 8, {200, 100, 50, 128}), {100, 50, 25}, "CMYK", 3);
  expect_plain(png(ihdr(8, 8, SPNG_COLOR_TYPE_GRAYSCALE), plain({77})), {77, 77, 77}, "grey");
  expect_plain(png(ihdr(8, 8, SPNG_COLOR_TYPE_GRAYSCALE_ALPHA), plain({77, 10})), {77, 77, 77},
               "grey + alpha");
  expect_plain(png(ihdr(8, 8, SPNG_COLOR_TYPE_TRUECOLOR_ALPHA), plain({1, 2, 3, 0})), {1, 2, 3},
               "RGB + alpha");
  expect_plain(
      png(ihdr(8, 8, SPNG_COLOR_TYPE_TRUECOLOR, 16), plain({1, 2, 3, 4, 5, 6})),  // host order: low first
      {2, 4, 6}, "RGB 16 bit");
  spng_plte palette{.n_entries = 2,
                    .entries = {{.red = 9, .green = 8, .blue = 7}, {.red = 4, .green = 5, .blue = 6}}};
  expect_plain(png(ihdr(8, 8, SPNG_COLOR_TYPE_INDEXED), plain({1}), &palette), {4, 5, 6}, "palette");
  expect_plain(png(ihdr(8, 8, SPNG_COLOR_TYPE_GRAYSCALE, 8, SPNG_INTERLACE_ADAM7), plain({5})), {5, 5, 5},
               "grey");
}

TEST(Decode, GivesTheValuesOf16Bits) {
  using Values = std::vector<std::uint16_t>;
  const auto file = [](int colour, int depth, std::initializer_list<std::uint8_t> sample) {
    Bytes samples;
    for (int i = 0; i < 64; ++i) samples.insert(samples.end(), sample);
    return png(ihdr(8, 8, colour, depth), samples);
  };
  const auto expect_pixels = [](const Bytes& of, const Values& pixel) {
    const auto values = values_of_16_bits(of);
    ASSERT_EQ(values.size(), 64 * 3);
    for (std::size_t i = 0; i < values.size(); ++i) ASSERT_EQ(values[i], pixel[i % 3]) << i;
  };
  expect_pixels(file(SPNG_COLOR_TYPE_GRAYSCALE, 16, {0xff, 0x0f}), {4095, 4095, 4095});
  expect_pixels(file(SPNG_COLOR_TYPE_GRAYSCALE_ALPHA, 16, {0xff, 0x0f, 0xff, 0xff}), {4095, 4095, 4095});
  expect_pixels(file(SPNG_COLOR_TYPE_TRUECOLOR, 16, {1, 0, 2, 0, 0, 3}), {1, 2, 768});
  expect_pixels(file(SPNG_COLOR_TYPE_TRUECOLOR_ALPHA, 16, {1, 0, 0, 2, 3, 0, 0, 255}), {1, 512, 3});
  EXPECT_THAT(values_of_16_bits(file(SPNG_COLOR_TYPE_GRAYSCALE, 8, {200})), testing::IsEmpty());
  EXPECT_THAT(values_of_16_bits(jpeg(picture(8, 8))), testing::IsEmpty());
  auto cut = file(SPNG_COLOR_TYPE_GRAYSCALE, 16, {0xff, 0x0f});
  cut.resize(cut.size() - 30);
  EXPECT_THROW((void)values_of_16_bits(cut), BrokenImage);
}

TEST(Decode, Scales16BitsByTheirRange) {
  // Two pixels, host order: (100, 200, 300) and (1100, 612, 300).
  const Bytes deep =
      png(ihdr(1, 2, SPNG_COLOR_TYPE_TRUECOLOR, 16), {100, 0, 200, 0, 0x2c, 1, 0x4c, 4, 0x64, 2, 0x2c, 1});
  const auto scaled = [](const Bytes& bytes, const std::optional<Range>& range) {
    ImageDecoder decoder;
    RgbImage image;
    decoder.decode(bytes, decoder.read_header(bytes), 1, image, range);
    return image.pixels;
  };
  EXPECT_THAT(scaled(deep, {}), testing::ElementsAre(0, 0, 1, 4, 2, 1)) << "the upper 8 bits";
  EXPECT_THAT(scaled(deep, Range{}), testing::ElementsAre(0, 26, 51, 255, 131, 51))
      << "of all channels together";
  EXPECT_THAT(scaled(deep, Range{.fixed = std::pair(0, 1023)}),
              testing::ElementsAre(25, 50, 75, 255, 153, 75));
  const Bytes shallow = png(picture(8, 8));
  EXPECT_EQ(scaled(shallow, Range{}), picture(8, 8).pixels) << "8 bits stay as they are";
}

TEST(Decode, TakesAPpmAsItIsWritten) {
  const RgbImage image = picture(5, 7, 2);
  const Bytes file = to_ppm(image);
  EXPECT_EQ(decoded(file).pixels, image.pixels);
  Bytes cut = file;
  cut.pop_back();
  EXPECT_THAT(reason_of(cut), HasSubstr("104 bytes of pixels and needs 105"));
  const std::string headers[] = {"P6\n",           "P6\n7",      "P6\n7 5\n65535\n",        "P6\n-7 5\n255\n",
                                 "P6\n0 5\n255\n", "P6 7 5 255", "P6\n99999999999 5\n255\n"};
  for (const auto& header : headers) EXPECT_NE(reason_of(Bytes(header.begin(), header.end())), "") << header;
}

TEST(Decode, ReducesAJpegNoFurtherThanAsked) {
  const Bytes file = jpeg(picture(201, 400));
  const std::pair<double, int> cases[] = {{1, 201},   {0.51, 201}, {0.5, 101}, {0.26, 101},
                                          {0.25, 51}, {0.125, 26}, {0.01, 26}};
  for (const auto& [scale, height] : cases) EXPECT_EQ(decoded(file, scale).height, height) << scale;
  EXPECT_EQ(decoded(png(picture(201, 400)), 0.01).height, 201);
}

// A file that is cut anywhere, or damaged, is said to be broken; it never gives half a picture.
TEST(Decode, RefusesWhatEndsEarly) {
  for (const Bytes& whole : {jpeg(picture(40, 60)), png(picture(40, 60))}) {
    ASSERT_EQ(reason_of(whole), "");
    for (const std::size_t left : {std::size_t{0}, std::size_t{1}, std::size_t{4}, whole.size() / 3,
                                   whole.size() / 2, whole.size() - 30})
      EXPECT_NE(reason_of(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(left))), "")
          << left;
  }
}

// After a file that ended in its header the next one was called broken too, by the same decoder.
TEST(Decode, IsNotSpoiltByABrokenImageBefore) {
  const Bytes whole = jpeg(picture(33, 40, 3));
  ImageDecoder decoder;
  RgbImage image;
  for (std::size_t length = 3; length < whole.size(); ++length) {
    const Bytes cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length));
    EXPECT_THROW(decoder.decode(cut, decoder.read_header(cut), 1, image), BrokenImage) << length;
    ASSERT_NO_THROW(decoder.decode(whole, decoder.read_header(whole), 1, image))
        << "after " << length << " bytes";
  }
}

TEST(Decode, SaysWhatIsWrong) {
  EXPECT_EQ(reason_of({}), "the file is empty");
  EXPECT_THAT(reason_of({'P', 'S', 'D', '8', '9', 'a'}), HasSubstr("it is no JPEG, PNG, PPM, WebP"));
  Bytes damaged = png(picture(40, 60));
  damaged[damaged.size() / 2] ^= 0xff;
  EXPECT_THAT(reason_of(damaged), HasSubstr("PNG: "));
}

// A header may announce gigabytes in a file of a hundred bytes; no memory is taken for it.
TEST(Decode, RefusesMorePixelsThanTheFileExplains) {
  Bytes file = jpeg(picture(8, 8));
  const std::uint8_t start_of_frame[] = {0xff, 0xc0, 0x00, 0x11, 0x08};
  const auto at = std::search(file.begin(), file.end(), std::begin(start_of_frame), std::end(start_of_frame));
  ASSERT_NE(at, file.end());
  for (std::ptrdiff_t i = 5; i < 9; ++i) at[i] = 0xf0;  // height and width: 61,680
  EXPECT_THAT(reason_of(file), HasSubstr("cannot hold"));
}

}  // namespace
}  // namespace paceline::data
