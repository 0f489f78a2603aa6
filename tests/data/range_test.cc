#include "data/range.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <vector>

#include "data/dataset.h"
#include "files.h"
#include "image/pictures.h"

namespace paceline::data {
namespace {

TEST(Range, ScalesValuesToItsEnds) {
  const std::vector<std::uint16_t> values{0, 4095, 2047, 65535, 100};
  Bytes bytes(5);
  scale_to_8_bits(values, {.fixed = std::pair(0, 4095)}, bytes);
  EXPECT_THAT(bytes, testing::ElementsAre(0, 255, 127, 255, 6));
  scale_to_8_bits(values, {}, bytes);
  EXPECT_THAT(bytes, testing::ElementsAre(0, 16, 8, 255, 0));
  // With the range of all values 16 bits become 8 as x / 257, rounded.
  for (int value = 0; value < 65536; value += 97) {
    const std::vector<std::uint16_t> one{static_cast<std::uint16_t>(value)};
    Bytes scaled(1);
    scale_to_8_bits(one, {.fixed = std::pair(0, 65535)}, scaled);
    ASSERT_EQ(scaled[0], (value + 128) / 257);
  }
}

/// A grey PNG of 16 bits with values from 0 to `largest`.
Bytes grey_of_16_bits(int largest) {
  Bytes samples;
  for (int i = 0; i < 8 * 8; ++i) {
    const auto value = static_cast<std::uint16_t>(largest * i / 63);
    samples.push_back(static_cast<std::uint8_t>(value & 0xff));
    samples.push_back(static_cast<std::uint8_t>(value >> 8));
  }
  return png(ihdr(8, 8, SPNG_COLOR_TYPE_GRAYSCALE, 16), samples);
}

TEST(Range, ScalesTheImagesOfAFolder) {
  const TemporaryDirectory folder;
  const auto open_with = [&](const std::string& options) {
    return open("folder:" + folder.path().string() + ",size=8" + options);
  };
  for (const char* name : {"a", "b"})
    for (int i = 0; i < 5; ++i)
      write_bytes(folder.path() / name / (std::to_string(i) + ".png"),
                  grey_of_16_bits(i % 2 == 0 ? 4095 : 1023));
  EXPECT_THAT(error_of([&] { (void)open_with(""); }).text,
              testing::HasSubstr("add range=0:4095, or range=own"));
  const Source own = open_with(",range=own"), fixed = open_with(",range=0:4095");
  EXPECT_THAT(own.notes, testing::Contains(testing::HasSubstr("have 16 bits, each scaled by its own")));
  EXPECT_THAT(fixed.notes, testing::Contains(testing::HasSubstr("these values become 0 and 255")));
  EXPECT_EQ(identity_of(own, 1).range, Range{});
  const auto largest = [&](const Source& source, std::int64_t index) {
    Bytes pixels(static_cast<std::size_t>(source.train->format().bytes()));
    (void)source.train->read(index, pixels);
    return int{std::ranges::max(pixels)};
  };
  std::set<int> brightest;
  for (std::int64_t i = 0; i < own.train->size(); ++i) {
    EXPECT_EQ(largest(own, i), 255) << i;
    brightest.insert(largest(fixed, i));
  }
  EXPECT_THAT(brightest, testing::ElementsAre(64, 255)) << "brightness stays comparable between images";
  EXPECT_EQ(error_of([&] { (void)open_with(",range=0-4095"); }).kind, base::ErrorKind::usage);
  for (const char* name : {"a", "b"})
    for (int i = 0; i < 5; ++i)
      write_bytes(folder.path() / name / (std::to_string(i) + ".png"), png(picture(8, 8, i)));
  EXPECT_THAT(open_with(",range=own").notes,
              testing::Contains(testing::HasSubstr("range=own changes nothing")));
}

TEST(Range, IsReadAsItIsWritten) {
  for (const auto& range :
       {Range{}, Range{.fixed = std::pair(0, 4095)}, Range{.fixed = std::pair(1000, 65535)}})
    EXPECT_EQ(range_named(text_of(range)), range) << text_of(range);
  for (const char* wrong :
       {"", "5", "5:5", "6:5", "0:65536", "-1:5", "0:5:6", "a:b", "0:", ":5", "0:5 ", "owner"})
    EXPECT_EQ(range_named(wrong), std::nullopt) << wrong;
}

}  // namespace
}  // namespace paceline::data
