#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "golden/records.h"
#include "report/build.h"

namespace paceline::report {
namespace {

using testing::HasSubstr;

const Section* scores_of(const Document& document) {
  const auto found = std::ranges::find(document.sections, "scores", &Section::id);
  return found == document.sections.end() ? nullptr : &*found;
}

std::vector<measure::Record> two_cells() {
  return {golden::make_record({.workers = 1}), golden::make_record({.workers = 2})};
}

TEST(Scores, IsThereOnlyWithPredictions) { EXPECT_EQ(scores_of(build(two_cells())), nullptr); }

TEST(Scores, SaysRatioIntervalAndRivals) {
  const analysis::ScoredStep right{.workers = 4,
                                   .local_batch = 32,
                                   .predicted = {.value = 0.1, .low = 0.09, .high = 0.11},
                                   .measured = 0.103,
                                   .cell = "scale weak, 4 workers",
                                   .constant_overhead = 0.05,
                                   .scalability_law = 0};
  auto wrong = right;
  wrong.workers = 8, wrong.measured = 0.12;
  const auto document =
      build(two_cells(),
            {.title = "",
             .command = "",
             .scored = {{.name = "P.json", .steps = {right, wrong}, .not_scored = {}},
                        {.name = "Q.json", .steps = {}, .not_scored = {"a is not scored: it is of vgg11"}}}});
  const auto* section = scores_of(document);
  ASSERT_NE(section, nullptr);
  const auto text = to_markdown(document);
  EXPECT_THAT(text, HasSubstr("1 of 2 predicted steps inside their 90 % interval."));
  EXPECT_THAT(text, HasSubstr("Q.json: no record answers it: a is not scored: it is of vgg11."));
  const auto* table = std::get_if<Table>(&section->blocks.back());
  ASSERT_NE(table, nullptr);
  ASSERT_EQ(table->rows.size(), 2U);
  EXPECT_NEAR(*table->rows[0][6].value, 1.03, 1e-9);
  EXPECT_EQ(table->rows[0][7].text, "inside");
  EXPECT_NEAR(*table->rows[0][8].value, 2.06, 1e-9) << "over the constant overhead";
  EXPECT_FALSE(table->rows[0][9].value) << "a rival that says nothing";
  EXPECT_EQ(table->rows[1][7].text, "OUTSIDE");
}

}  // namespace
}  // namespace paceline::report
