#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/dataset.h"
#include "data/files.h"
#include "data/image/decode.h"
#include "data/mutations.h"
#include "pictures.h"

namespace paceline::data {
namespace {

using testing::Contains;
using testing::HasSubstr;

/// EXIF data with two entries, of which the second is the orientation.
Bytes exif_data(int turn, bool is_big = false, int type = 3) {
  Bytes bytes = is_big ? Bytes{'M', 'M'} : Bytes{'I', 'I'};
  const auto add = [&](std::uint32_t value, int width) {
    for (int i = 0; i < width; ++i)
      bytes.push_back(static_cast<std::uint8_t>(value >> (8 * (is_big ? width - 1 - i : i))));
  };
  const auto entry = [&](std::uint32_t tag, int of, std::uint32_t value) {
    add(tag, 2);
    add(static_cast<std::uint32_t>(of), 2);
    add(1, 4);
    add(value, of == 3 ? 2 : 4);
    if (of == 3) add(0, 2);
  };
  add(42, 2);
  add(8, 4);
  add(2, 2);
  entry(0x100, 4, 640);
  entry(0x112, type, static_cast<std::uint32_t>(turn));
  add(0, 4);
  return bytes;
}

/// `jpeg` with an EXIF segment behind another one.
Bytes with_exif(const Bytes& jpeg, const Bytes& exif) {
  Bytes bytes(jpeg.begin(), jpeg.begin() + 2);
  const Bytes comment{0xff, 0xfe, 0, 4, 'a', 'b'};
  bytes.insert(bytes.end(), comment.begin(), comment.end());
  const auto length = 2 + 6 + exif.size();
  const Bytes head{0xff,
                   0xe1,
                   static_cast<std::uint8_t>(length >> 8),
                   static_cast<std::uint8_t>(length),
                   'E',
                   'x',
                   'i',
                   'f',
                   0,
                   0};
  bytes.insert(bytes.end(), head.begin(), head.end());
  bytes.insert(bytes.end(), exif.begin(), exif.end());
  bytes.insert(bytes.end(), jpeg.begin() + 2, jpeg.end());
  return bytes;
}

RgbImage upright_image(const Bytes& bytes, double scale = 1) {
  ImageDecoder decoder;
  RgbImage image;
  const auto header = decoder.read_header(bytes);
  decoder.decode(bytes, header, scale, image);
  if (scale == 1) {
    EXPECT_EQ(image.height, header.height);
    EXPECT_EQ(image.width, header.width);
  }
  return image;
}

/// Where the upright pixel (y, x) is stored, in an image of height h and width w: EXIF's definition.
struct StoredAt {
  int y, x;
};
StoredAt stored_place(int turn, int y, int x, int h, int w) {
  switch (turn) {
    case 2:
      return {y, w - 1 - x};
    case 3:
      return {h - 1 - y, w - 1 - x};
    case 4:
      return {h - 1 - y, x};
    case 5:
      return {x, y};
    case 6:  // the first row is stored at the right: turned by 90 degrees clockwise
      return {h - 1 - x, y};
    case 7:
      return {h - 1 - x, w - 1 - y};
    case 8:
      return {x, w - 1 - y};
    default:
      return {y, x};
  }
}

TEST(ImageDecoder, TurnsAllEightOrientationsUpright) {
  const Bytes plain = jpeg(picture(20, 33));
  const RgbImage stored = upright_image(plain);
  for (int turn = 1; turn <= 8; ++turn)
    for (const bool is_big : {false, true})
      for (const int type : {3, 4}) {
        const Bytes file = with_exif(plain, exif_data(turn, is_big, type));
        const RgbImage upright = upright_image(file);
        ASSERT_EQ(upright.height, turn >= 5 ? 33 : 20);
        ASSERT_EQ(upright.width, turn >= 5 ? 20 : 33);
        for (int y = 0; y < upright.height; ++y)
          for (int x = 0; x < upright.width; ++x) {
            const auto from = stored_place(turn, y, x, 20, 33);
            for (int c = 0; c < 3; ++c)
              ASSERT_EQ(upright.pixels[static_cast<std::size_t>(3 * (y * upright.width + x) + c)],
                        stored.pixels[static_cast<std::size_t>(3 * (from.y * 33 + from.x) + c)])
                  << turn << ": " << y << ", " << x;
          }
        const RgbImage small = upright_image(file, 0.5);
        EXPECT_EQ(small.height, turn >= 5 ? 17 : 10);
        EXPECT_EQ(small.width, turn >= 5 ? 10 : 17);
      }
  for (const int turn : {0, 9, 65535})
    EXPECT_EQ(upright_image(with_exif(plain, exif_data(turn))).pixels, stored.pixels);
}

TEST(ImageDecoder, TurnsNothingByDamagedExif) {
  const Bytes plain = jpeg(picture(20, 33));
  const Bytes exif = exif_data(6);
  EXPECT_EQ(exif_turn(exif), 6);
  for (std::size_t length = 0; length < 34; ++length)
    EXPECT_EQ(exif_turn(std::span(exif).first(length)), 1) << length;
  read_mutations(with_exif(plain, exif), [](const Bytes& bytes) {
    try {
      const auto image = upright_image(bytes);
      EXPECT_EQ(image.pixels.size(), static_cast<std::size_t>(3 * image.height * image.width));
    } catch (const BrokenImage&) {
    }
  });
}

TEST(ImageDecoder, SaysThatExifTurnsImages) {
  const TemporaryDirectory folder;
  for (const char* name : {"a/1.jpg", "a/2.jpg", "b/1.jpg", "b/2.jpg"})
    write_bytes(folder.path() / name,
                name[0] == 'a' ? with_exif(jpeg(picture(9, 12)), exif_data(6)) : jpeg(picture(9, 9)));
  const Source source = open("folder:" + folder.path().string() + ",size=8,test=0.5");
  EXPECT_THAT(source.notes, Contains(HasSubstr("EXIF turns 1 of the 2 JPEG files")));
}

}  // namespace
}  // namespace paceline::data
