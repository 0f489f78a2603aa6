#include "data/range.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "files.h"

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
