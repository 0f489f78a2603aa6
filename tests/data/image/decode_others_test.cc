// WebP, TIFF, GIF and BMP, written by their libraries' encoders or by hand; tests/parity/decode.py has
// Pillow's files.

#include <gif_lib.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <tiffio.h>
#include <webp/encode.h>

#include <cstring>

#include "base/file.h"
#include "data/dataset.h"
#include "data/image/inspect.h"
#include "pictures.h"

namespace paceline::data {
namespace {

using testing::HasSubstr;

Bytes webp(const RgbImage& image) {
  std::uint8_t* data = nullptr;
  const auto size =
      WebPEncodeLosslessRGB(image.pixels.data(), image.width, image.height, 3 * image.width, &data);
  Bytes bytes(data, data + size);
  WebPFree(data);
  return bytes;
}

class DecodeOthers : public testing::Test {
 protected:
  [[nodiscard]] Bytes written() const {
    const auto text = base::read_file(path());
    return {text.begin(), text.end()};
  }
  [[nodiscard]] std::string path() const { return (directory_.path() / "image").string(); }
  [[nodiscard]] std::filesystem::path set_folder() const { return directory_.path() / "set"; }

  [[nodiscard]] Bytes tiff(const RgbImage& image, int turn = 1) const {
    TIFF* const file = TIFFOpen(path().c_str(), "w");
    TIFFSetField(file, TIFFTAG_IMAGEWIDTH, image.width);
    TIFFSetField(file, TIFFTAG_IMAGELENGTH, image.height);
    TIFFSetField(file, TIFFTAG_SAMPLESPERPIXEL, 3);
    TIFFSetField(file, TIFFTAG_BITSPERSAMPLE, 8);
    TIFFSetField(file, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_RGB);
    TIFFSetField(file, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
    TIFFSetField(file, TIFFTAG_COMPRESSION, COMPRESSION_LZW);
    TIFFSetField(file, TIFFTAG_ORIENTATION, turn);
    for (int y = 0; y < image.height; ++y) {
      auto row = std::vector(image.pixels.begin() + 3 * y * image.width,
                             image.pixels.begin() + 3 * (y + 1) * image.width);
      TIFFWriteScanline(file, row.data(), static_cast<std::uint32_t>(y), 0);
    }
    TIFFClose(file);
    return written();
  }

  /// One of at most 8 colours, at (1, 2) of a canvas that is larger by 3 each way where asked for.
  [[nodiscard]] Bytes gif(const RgbImage& image, bool on_a_canvas = false) const {
    int code = 0;
    GifFileType* const file = EGifOpenFileName(path().c_str(), false, &code);
    ColorMapObject* const map = GifMakeMapObject(8, nullptr);
    for (int i = 0; i < 8; ++i)
      map->Colors[i] = {static_cast<GifByteType>(i & 1 ? 255 : 0), static_cast<GifByteType>(i & 2 ? 255 : 0),
                        static_cast<GifByteType>(i & 4 ? 255 : 0)};
    const int more = on_a_canvas ? 3 : 0;
    EGifPutScreenDesc(file, image.width + more, image.height + more, 8, 5, map);
    EGifPutImageDesc(file, on_a_canvas ? 1 : 0, on_a_canvas ? 2 : 0, image.width, image.height, false,
                     nullptr);
    for (std::size_t i = 0; i < image.pixels.size(); i += 3)
      EGifPutPixel(file, (image.pixels[i] > 0 ? 1 : 0) + (image.pixels[i + 1] > 0 ? 2 : 0) +
                             (image.pixels[i + 2] > 0 ? 4 : 0));
    GifFreeMapObject(map);
    EGifCloseFile(file, &code);
    return written();
  }

 private:
  TemporaryDirectory directory_;
};

Bytes bmp(const RgbImage& image) {
  const int stride = (3 * image.width + 3) / 4 * 4, size = 54 + stride * image.height;
  Bytes bytes(static_cast<std::size_t>(size), 0);
  const auto put = [&](std::size_t at, int value) { std::memcpy(&bytes[at], &value, 4); };
  bytes[0] = 'B', bytes[1] = 'M';
  put(2, size), put(10, 54), put(14, 40), put(18, image.width), put(22, image.height);
  bytes[26] = 1, bytes[28] = 24;
  for (int y = 0; y < image.height; ++y)
    for (int x = 0; x < image.width; ++x)
      for (int c = 0; c < 3; ++c)
        bytes[static_cast<std::size_t>(54 + stride * (image.height - 1 - y) + 3 * x + c)] =
            image.pixels[static_cast<std::size_t>(3 * (y * image.width + x) + 2 - c)];
  return bytes;
}

/// Eight colours, so that a palette holds them.
RgbImage few_colours(int height, int width) {
  return painted(height, width, [](int y, int x) {
    const int i = (3 * y + x) % 8;
    return Rgb{static_cast<std::uint8_t>(i & 1 ? 255 : 0), static_cast<std::uint8_t>(i & 2 ? 255 : 0),
               static_cast<std::uint8_t>(i & 4 ? 255 : 0)};
  });
}

TEST_F(DecodeOthers, GiveTheirPixelsBack) {
  for (const auto& [height, width] : {std::pair{1, 1}, {13, 7}, {40, 64}}) {
    const RgbImage image = few_colours(height, width);
    for (const auto& [bytes, kind] :
         {std::pair{webp(image), "WebP"}, {tiff(image), "TIFF"}, {gif(image), "GIF"}, {bmp(image), "BMP"}}) {
      EXPECT_STREQ(name(ImageDecoder().read_header(bytes).kind), kind);
      const RgbImage back = decoded(bytes);
      EXPECT_EQ(std::pair(back.height, back.width), std::pair(height, width)) << kind;
      EXPECT_EQ(back.pixels, image.pixels) << kind;
    }
  }
}

TEST_F(DecodeOthers, TiffsAreTurnedUpright) {
  const RgbImage image = few_colours(4, 6);
  RgbImage turned = image;
  turn_upright(turned, 6);
  const auto bytes = tiff(image, 6);
  EXPECT_EQ(ImageDecoder().read_header(bytes).height, 6);
  EXPECT_EQ(decoded(bytes).pixels, turned.pixels);
}

TEST_F(DecodeOthers, TransparencyIsDroppedNotMultiplied) {
  const RgbImage image = few_colours(4, 6);
  TIFF* const file = TIFFOpen(path().c_str(), "w");  // a plane for each channel, which libtiff converts
  TIFFSetField(file, TIFFTAG_IMAGEWIDTH, 6);
  TIFFSetField(file, TIFFTAG_IMAGELENGTH, 4);
  TIFFSetField(file, TIFFTAG_SAMPLESPERPIXEL, 4);
  TIFFSetField(file, TIFFTAG_BITSPERSAMPLE, 8);
  TIFFSetField(file, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_RGB);
  TIFFSetField(file, TIFFTAG_PLANARCONFIG, PLANARCONFIG_SEPARATE);
  std::uint16_t kind = EXTRASAMPLE_UNASSALPHA;
  TIFFSetField(file, TIFFTAG_EXTRASAMPLES, 1, &kind);
  for (std::uint16_t plane = 0; plane < 4; ++plane)
    for (std::uint32_t y = 0; y < 4; ++y) {
      std::vector<std::uint8_t> row(6, 0);  // alpha: nothing is seen
      for (std::size_t x = 0; plane < 3 && x < 6; ++x) row[x] = image.pixels[3 * (6 * y + x) + plane];
      TIFFWriteScanline(file, row.data(), y, plane);
    }
  TIFFClose(file);
  EXPECT_EQ(decoded(written()).pixels, image.pixels);
}

TEST_F(DecodeOthers, TiffOf16BitsGivesItsValues) {
  const auto written_as = [&](std::uint16_t photometric, std::uint16_t samples, std::uint16_t planes,
                              std::vector<std::uint16_t> values) {
    TIFF* const file = TIFFOpen(path().c_str(), "w");
    TIFFSetField(file, TIFFTAG_IMAGEWIDTH, values.size() / samples);
    TIFFSetField(file, TIFFTAG_IMAGELENGTH, 1);
    TIFFSetField(file, TIFFTAG_SAMPLESPERPIXEL, samples);
    TIFFSetField(file, TIFFTAG_BITSPERSAMPLE, 16);
    TIFFSetField(file, TIFFTAG_PHOTOMETRIC, photometric);
    TIFFSetField(file, TIFFTAG_PLANARCONFIG, planes);
    for (std::uint16_t plane = 0; plane < (planes == PLANARCONFIG_SEPARATE ? samples : 1); ++plane)
      TIFFWriteScanline(file, values.data(), 0, plane);
    TIFFClose(file);
    return written();
  };
  constexpr auto kWhole = PLANARCONFIG_CONTIG;
  using testing::ElementsAre;
  EXPECT_THAT(values_of_16_bits(written_as(PHOTOMETRIC_MINISBLACK, 1, kWhole, {7, 4095})),
              ElementsAre(7, 7, 7, 4095, 4095, 4095));
  EXPECT_THAT(values_of_16_bits(written_as(PHOTOMETRIC_MINISWHITE, 1, kWhole, {7, 65535})),
              ElementsAre(65528, 65528, 65528, 0, 0, 0));
  EXPECT_THAT(values_of_16_bits(written_as(PHOTOMETRIC_RGB, 3, kWhole, {1, 2, 3, 40000, 5, 6})),
              ElementsAre(1, 2, 3, 40000, 5, 6));
  const auto planes = written_as(PHOTOMETRIC_RGB, 3, PLANARCONFIG_SEPARATE, {1, 2, 65535});
  EXPECT_THROW((void)values_of_16_bits(planes), BrokenImage);
  EXPECT_EQ(reason_of(planes), "") << "without a range libtiff converts it";
  // So --bad-images skip must decode as training will.
  for (const char* name : {"a", "b"})
    for (int i = 0; i < 5; ++i)
      write_bytes(set_folder() / name / (std::to_string(i) + ".tif"),
                  i == 2 ? planes : written_as(PHOTOMETRIC_RGB, 3, kWhole, {1, 2, 65535}));
  BrokenImageCache cache;
  for (const auto& [options, left] : {std::pair{",range=own", 8}, {"", 10}}) {
    const Source source =
        open("folder:" + set_folder().string() + options, {.skip_bad_images = true, .broken_images = &cache});
    EXPECT_EQ(source.train->size() + source.test->size(), left) << options;
  }
  EXPECT_THAT(values_of_16_bits(tiff(few_colours(4, 6))), testing::IsEmpty()) << "8 bits";
}

TEST_F(DecodeOthers, FalseTagsOfATiffAreRefused) {
  auto file = tiff(few_colours(4, 6));
  const auto set = [&](std::uint16_t tag, std::uint32_t value,
                       Bytes bytes) {  // little-endian, entries of 12 bytes
    std::uint32_t at = 0;
    std::memcpy(&at, &bytes[4], 4);
    for (std::size_t entry = at + 2; entry + 12 <= bytes.size(); entry += 12) {
      std::uint16_t is = 0;
      std::memcpy(&is, &bytes[entry], 2);
      if (is != tag) continue;
      if (value > 0xffff) bytes[entry + 2] = 4;  // the type LONG
      std::memcpy(&bytes[entry + 8], &value, 4);
    }
    return bytes;
  };
  EXPECT_NE(reason_of(set(TIFFTAG_IMAGELENGTH, 0x10000001, file)), "");
  EXPECT_NE(reason_of(set(TIFFTAG_SAMPLESPERPIXEL, 65535, file)), "");
  EXPECT_EQ(reason_of(set(TIFFTAG_ORIENTATION, 9, file)), "") << "what is no orientation changes no pixel";
}

TEST_F(DecodeOthers, GifStandsOnItsCanvas) {
  const RgbImage image = few_colours(2, 3), back = decoded(gif(image, true));
  ASSERT_EQ(std::pair(back.height, back.width), std::pair(5, 6));
  const auto at = [](const RgbImage& one, int y, int x) {
    const auto begin = one.pixels.begin() + 3 * (y * one.width + x);
    return std::vector(begin, begin + 3);
  };
  EXPECT_EQ(at(back, 0, 0), (std::vector<std::uint8_t>{0, 0, 0})) << "the first colour of its palette";
  EXPECT_EQ(at(back, 2, 1), at(image, 0, 0));
  EXPECT_EQ(at(back, 3, 3), at(image, 1, 2));
}

TEST_F(DecodeOthers, BrokenFilesSayWhy) {
  const RgbImage image = few_colours(20, 31);
  for (const auto& whole : {webp(image), tiff(image), gif(image), bmp(image)}) {
    for (std::size_t length = 8; length + 40 < whole.size(); length += 7) {
      const auto reason = reason_of({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(length)});
      EXPECT_NE(reason, "") << length << " of " << whole.size() << " bytes of a file that begins with "
                            << whole[0];
    }
    for (std::size_t at = 4; at < whole.size(); at += 3) {  // whatever comes out: no crash, no other error
      auto flipped = whole;
      flipped[at] ^= 0xff;
      (void)reason_of(flipped);
    }
  }
}

TEST_F(DecodeOthers, BmpFromTheTopIsTurned) {
  const RgbImage image = few_colours(5, 3);
  auto from_top = bmp(image);
  const int height = -5;
  std::memcpy(&from_top[22], &height, 4);
  EXPECT_EQ(ImageDecoder().read_header(from_top).height, 5);
  const auto turned = decoded(from_top).pixels;
  ASSERT_EQ(turned.size(), image.pixels.size());
  EXPECT_TRUE(std::equal(turned.begin(), turned.begin() + 9, image.pixels.end() - 9))
      << "its last row is the first";
}

TEST_F(DecodeOthers, BmpPalettesHoldTheirColours) {
  Bytes file(14 + 40 + 2 * 4 + 4, 0);  // 2 colours, one pixel of 8 bits
  const auto put = [&](std::size_t at, int value) { std::memcpy(&file[at], &value, 4); };
  file[0] = 'B', file[1] = 'M', file[26] = 1, file[28] = 8;
  put(10, 62), put(14, 40), put(18, 1), put(22, 1), put(46, 2), put(58, 0x0102'03);
  file[62] = 1;
  EXPECT_EQ(decoded(file).pixels, (std::vector<std::uint8_t>{1, 2, 3}));
  file[62] = 2;
  EXPECT_THAT(reason_of(file), HasSubstr("a colour that its palette lacks"));
}

TEST_F(DecodeOthers, FalseSizesAreRefused) {
  auto large = bmp(few_colours(2, 2));
  const int side = 1 << 14;
  std::memcpy(&large[18], &side, 4);
  std::memcpy(&large[22], &side, 4);
  EXPECT_THAT(reason_of(large), HasSubstr("which 70 bytes cannot hold"));
  const int negative = -100;
  std::memcpy(&large[18], &negative, 4);
  std::memcpy(&large[22], &negative, 4);
  EXPECT_NE(reason_of(large), "");
}

}  // namespace
}  // namespace paceline::data
