#include "base/csv.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"

namespace paceline::base {
namespace {

std::vector<std::vector<std::string>> cells_of(std::string_view text) {
  std::vector<std::vector<std::string>> lines;
  for (const auto& line : read_csv(text, "f")) {
    auto& cells = lines.emplace_back();
    for (const auto& cell : line) cells.push_back(cell.text);
  }
  return lines;
}

TEST(Csv, ReadsQuotedCellsAndAnySeparator) {
  using Lines = std::vector<std::vector<std::string>>;
  EXPECT_EQ(cells_of("a,b\n\"x, \"\"y\"\"\",2\r\n\n3,"), (Lines{{"a", "b"}, {"x, \"y\"", "2"}, {"3", ""}}));
  EXPECT_EQ(cells_of("a;b\n1,5;2\n"), (Lines{{"a", "b"}, {"1,5", "2"}}));
  EXPECT_EQ(cells_of("a\tb\n1\t\n"), (Lines{{"a", "b"}, {"1", ""}}));
  EXPECT_TRUE(cells_of("").empty());
  for (const char* text : {"x", "a,b", "say \"x\"", "two\nlines", ""})
    EXPECT_EQ(cells_of("k," + csv_cell(text))[0][1], text);
  EXPECT_THROW((void)read_csv("a\n\"open", "f"), Error);
  const auto lines = read_csv("a,b\n\n1,2\n", "f", 5);
  EXPECT_EQ(lines[1][1].line, 7u);
  EXPECT_EQ(lines[1][1].column, 3u);
}

}  // namespace
}  // namespace paceline::base
