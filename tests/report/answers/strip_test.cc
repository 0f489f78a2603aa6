// Single steps beside what other programs did meanwhile.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "golden/records.h"
#include "report/build.h"
#include "report/study_records.h"

namespace paceline::report {
namespace {

using golden::make_record;
using measure::Record;
using testing::HasSubstr;

Record window(std::int64_t batch, int repeat, const std::string& created, std::optional<double> others) {
  auto record = make_record({.kind = "sweep", .local_batch = batch, .repeat = repeat});
  record.created = created;
  record.window.others_cores = others;
  return record;
}

Strip strip_of(const std::vector<Record>& records) {
  const Document document = build(records);
  const auto* strip = find<Strip>(document, "step-times");
  return strip == nullptr ? Strip{} : *strip;
}

TEST(Strip, HasWindowsInTheOrderOfTime) {
  const auto strip =
      strip_of({window(64, 0, "2026-11-01T10:00:09Z", 0.0), window(32, 0, "2026-11-01T10:00:01Z", 0.0),
                window(32, 1, "2026-11-01T10:00:05Z", 1.5)});
  ASSERT_EQ(strip.windows.size(), 3U) << "the repeat that was set aside included";
  EXPECT_EQ(strip.windows[1].mark, "disturbed");
  EXPECT_DOUBLE_EQ(*strip.windows[1].others_cores, 1.5);
  EXPECT_THAT(strip.windows[2].name, HasSubstr("64 images"));
  EXPECT_DOUBLE_EQ(strip.windows[1].begin_s, strip.windows[0].seconds);
  EXPECT_THAT(strip.finding, HasSubstr("Other programs were at work in 1 of 3 measured windows"));
}

TEST(Strip, SpansTheStepsOfItsGroups) {
  const auto strip =
      strip_of({make_record({.kind = "sweep", .local_batch = 32, .jitter = {1, 1, 1, 1, 1, 1, 1.5}})});
  ASSERT_EQ(strip.windows.size(), 1U);
  const auto& one = strip.windows.front();
  EXPECT_NEAR(one.high.back(), 1.5, 0.01);
  for (std::size_t i = 0; i < one.low.size(); ++i) {
    EXPECT_LE(one.low[i], one.middle[i]);
    EXPECT_LE(one.middle[i], one.high[i]);
  }
}

TEST(Strip, LeavesOutWhatContradictsItself) {
  auto wrong = window(32, 1, "2026-11-01T10:00:05Z", 0.0);
  wrong.ranks.front().wall_s *= 3;
  EXPECT_EQ(strip_of({window(32, 0, "2026-11-01T10:00:01Z", 0.0), wrong}).windows.size(), 1U);
}

TEST(Strip, SaysWhatItDoesNotKnow) {
  const auto strip = strip_of({window(32, 0, "2026-11-01T10:00:01Z", std::nullopt)});
  EXPECT_THAT(strip.finding, HasSubstr("It is not known whether other programs were at work;"));
  EXPECT_FALSE(strip.windows.front().others_cores.has_value());
}

TEST(Strip, CountsWindowsAsTheWarningDoes) {
  auto wrong = window(32, 4, "2026-11-01T10:00:11Z", 0.0),
       paused = window(32, 3, "2026-11-01T10:00:09Z", 0.0);
  wrong.ranks.front().wall_s *= 3;
  paused.window.paused_s = 1;
  auto skipped = window(32, 5, "2026-11-01T10:00:13Z", std::nullopt);
  skipped.status = "skipped";
  skipped.window = {};
  skipped.ranks.clear();
  const std::vector<Record> records{window(32, 0, "2026-11-01T10:00:01Z", 1.5),
                                    window(32, 1, "2026-11-01T10:00:05Z", 0.0),
                                    window(32, 2, "2026-11-01T10:00:07Z", std::nullopt),
                                    paused,
                                    wrong,
                                    skipped};
  const std::string counted =
      "ther programs were at work in 1 of 4 measured windows, and of 1 it is not known";
  EXPECT_THAT(strip_of(records).finding, HasSubstr(counted));
  EXPECT_THAT(build(records).warnings, testing::Contains(HasSubstr(counted)));
  EXPECT_THAT(strip_of({paused}).finding, HasSubstr("No other program was at work")) << "it stood still";
}

TEST(Strip, IsAbsentWithoutTimesOfSteps) {
  auto record = window(32, 0, "2026-11-01T10:00:01Z", 0.0);
  record.ranks.clear();
  EXPECT_TRUE(strip_of({record}).windows.empty());
}

TEST(Strip, IsATableWithBars) {
  const Strip strip{
      .id = "step-times",
      .finding = "f",
      .windows = {{.name = "a", .typical_s = 0.01, .low = {0.5, 1}, .middle = {1, 2}, .high = {1, 3}}}};
  const Table table = as_table(strip);
  ASSERT_EQ(table.rows.size(), 1U);
  EXPECT_DOUBLE_EQ(*table.rows[0][2].value, 0.005);
  EXPECT_DOUBLE_EQ(*table.rows[0][4].value, 0.03);
  EXPECT_EQ(table.rows[0][5].text, "▄█");
  EXPECT_EQ(table.rows[0][6].text, "-") << "not known";
}

TEST(Strip, StandsInExplain) { EXPECT_THAT(to_markdown(explain(study())), HasSubstr("step by step")); }

}  // namespace
}  // namespace paceline::report
