// The summary for a CI's page: short, whatever the report holds, and Markdown that shows texts as they are.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "report/build.h"
#include "report/sample.h"
#include "report/study_records.h"

namespace paceline::report {
namespace {

using testing::HasSubstr;
using testing::Not;

std::ptrdiff_t lines_of(const std::string& text) { return std::ranges::count(text, '\n'); }

TEST(Summary, HasHeadlineExpectationsAndAnswers) {
  const auto text =
      to_summary(build(study(), {.bounds = {read_bound("throughput>1"), read_bound("efficiency<0.5")}}));
  for (const char* part :
       {"### Paceline: resnet18-cifar on cifar10", "**Train with 2 workers", "| ✓ pass | throughput > 1 |",
        "| ✗ fail | efficiency &lt; 0.5 |", "| Which batch? |", "| How accurate? |"})
    EXPECT_THAT(text, HasSubstr(part));
  EXPECT_LE(lines_of(text), 25);
}

TEST(Summary, HasAtMostTwentyFiveLines) {
  for (const std::size_t bounds : {0, 1, 5, 9, 10, 11, 40}) {
    const auto document = build(study(), {.bounds = std::vector(bounds, read_bound("throughput>1"))});
    const auto text = to_summary(document);
    EXPECT_LE(lines_of(text), 25) << bounds;
    EXPECT_EQ(text.find("more |") != std::string::npos, bounds > 8) << text;
    EXPECT_THAT(text, HasSubstr("| How accurate? |"));
  }
}

// A failure is never among the rows that are left out.
TEST(Summary, BeginsWithTheExpectationsThatFailed) {
  std::vector<Bound> bounds(20, read_bound("throughput>1"));
  bounds.push_back(read_bound("throughput<1"));
  const auto text = to_summary(build(study(), {.bounds = bounds}));
  EXPECT_LT(text.find("fail"), text.find("pass"));
}

TEST(Summary, OfAComparisonHasWhatChanged) {
  Document document{.title = "A against B"};
  Comparison comparison{.finding = "B is 12 % faster"};
  for (int i = 0; i < 60; ++i)
    comparison.rows.push_back({.name = fmt::format("cell {}", i),
                               .word = i % 2 == 0 ? Comparison::Word::regressed : Comparison::Word::no_change,
                               .ratio = 0.9,
                               .before = "1",
                               .after = "2"});
  document.sections = {{.id = "compare", .blocks = {comparison}}};
  const auto text = to_summary(document);
  EXPECT_THAT(text, HasSubstr("B is 12 % faster."));
  EXPECT_THAT(text, HasSubstr("| cell 2 | regressed | 0.900 | 1 | 2 |"));
  EXPECT_THAT(text, Not(HasSubstr("cell 1 ")));
  EXPECT_THAT(text, HasSubstr("more |"));
  EXPECT_LE(lines_of(text), 25);
}

TEST(Summary, ShowsTextsAsTheyAre) {
  Document document{.title = "<b>&", .warnings = {"a|b <img>", "second"}};
  document.expectations = {{.text = "x | y", .why = "[a](b)\nnext"}};
  const auto text = to_summary(document);
  EXPECT_THAT(text, HasSubstr("### &lt;b>&amp;"));
  EXPECT_THAT(text, HasSubstr("x \\| y"));
  EXPECT_THAT(text, HasSubstr("[a]\\(b) next"));
  EXPECT_THAT(text, HasSubstr("> a|b &lt;img> (1 more in the report)"));
}

}  // namespace
}  // namespace paceline::report
