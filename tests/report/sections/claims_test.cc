#include "report/build.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "golden/records.h"
#include "report/study_records.h"

namespace paceline::report {
namespace {

using golden::make_training;
using measure::Record;
using testing::HasSubstr;
using testing::Not;

/// Three seeds of a baseline of 70 %, and of a batch of 2048 that differs by `differences`.
std::vector<Record> trainings(const std::vector<double>& differences) {
  std::vector<Record> records;
  for (int seed = 0; seed < static_cast<int>(differences.size()); ++seed) {
    const double luck = 0.01 * seed;
    records.push_back(make_training({.seed = seed, .accuracies = {0.70 + luck}}));
    records.push_back(
        make_training({.variant = "large batch",
                       .global_batch = 2048,
                       .seed = seed,
                       .accuracies = {0.70 + luck + differences[static_cast<std::size_t>(seed)]}}));
  }
  return records;
}

TEST(Claims, SayNoWorseOnlyWithinTheMargin) {
  const auto records = trainings({-0.001, -0.002, 0.001});
  EXPECT_THAT(text_of(records),
              HasSubstr("Batch 2,048 is no worse than the baseline by more than 0.5 points: "));
  const Document strict = build(records, {.margin = 0.001});
  const Table* table = find<Table>(strict, "claims");
  ASSERT_NE(table, nullptr);
  ASSERT_EQ(table->rows.size(), 1);
  EXPECT_EQ(table->rows[0][1].text, "3 pairs");
  EXPECT_EQ(table->rows[0][4].text, "not decided");
  EXPECT_THAT(table->footnotes, testing::Contains(HasSubstr("0.1 points")));
}

TEST(Claims, SayHowManySeedsWouldDecide) {
  EXPECT_THAT(text_of(trainings({-0.02, 0.02, 0.0})), HasSubstr("seeds would decide (--repeats "));
}

TEST(Claims, SayWorse) {
  EXPECT_THAT(text_of(trainings({-0.20, -0.21, -0.22})),
              HasSubstr("Batch 2,048 is worse than the baseline: -21.00 points"));
}

TEST(Claims, NeedSeveralSeeds) {
  const Document document = build(trainings({-0.2}));
  EXPECT_EQ(find<Table>(document, "claims"), nullptr);
}

}  // namespace
}  // namespace paceline::report
