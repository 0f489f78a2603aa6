#include "data/formats/arrays.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "data/files.h"

namespace paceline::data {
namespace {

using testing::HasSubstr;

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
