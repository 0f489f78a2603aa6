#include "data/formats/arrays.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/files.h"

namespace paceline::data {
namespace {

using testing::HasSubstr;

TEST(Arrays, ScalesValuesToARange) {
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

TEST(Arrays, NumbersClassesWithoutAHole) {
  const auto letters = number_classes("f", {{1, 5}, {2, 1}, {3, 9}});
  EXPECT_EQ(letters.first, 1);
  EXPECT_THAT(letters.names(), testing::ElementsAre("1", "2", "3"));
  EXPECT_EQ(number_classes("f", {{0, 5}, {1, 1}}).count, 2);
  const auto said = [](const std::map<std::int64_t, std::int64_t>& counts) {
    return error_of([&] { (void)number_classes("f", counts); }).text;
  };
  EXPECT_THAT(said({{0, 5}, {2, 1}}), HasSubstr("the label 2 occurs, but none of 1"));
  EXPECT_THAT(said({{-1, 5}, {0, 1}}), HasSubstr("smallest label is -1"));
  EXPECT_THAT(said({{0, 5}}), HasSubstr("all labels are 0"));
}

}  // namespace
}  // namespace paceline::data
