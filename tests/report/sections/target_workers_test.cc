#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "analysis/simulated_steps.h"
#include "golden/records.h"
#include "report/build.h"

namespace paceline::report {
namespace {

using measure::Record;
using testing::HasSubstr;

/// Steps of 20 ms and 1 ms a sample on one and two workers.
std::vector<Record> timed_records() {
  std::vector<Record> records;
  for (const int workers : {1, 2})
    for (const std::int64_t batch : {32, 64, 128}) {
      const double compute = 1e-3 * static_cast<double>(batch);
      for (auto& record : analysis::simulate({.workers = workers,
                          .local_batch = batch,
                          .forward = compute / 3,
                          .backward = 2 * compute / 3,
                          .update = 0.014,
                          .run_noise = 1e-4},
                                             3))
        records.push_back(std::move(record));
    }
  return records;
}

/// Trainings that need 400 (1 + 800 / B) steps, at the middle of three rates.
std::vector<Record> trained_records() {
  std::vector<Record> records;
  for (const std::int64_t batch : {64, 128, 256, 512, 1024})
    for (const double rate : {0.05, 0.1, 0.2}) {
      auto record = golden::make_training({.variant = fmt::format("batch {}, rate {}", batch, rate),
                                           .global_batch = batch,
                                           .lr = rate,
                                           .accuracies = {0.5, 0.91}});
      record.settings["target"] = "accuracy=0.9";
      record.id = fmt::format("b{}-lr{}", batch, rate);
      const double steps = 400 * (1 + 800 / static_cast<double>(batch)) * (rate == 0.1 ? 1 : 1.5);
      record.target =
          measure::TargetRecord{.quantity = "accuracy", .value = 0.9, .update = std::llround(steps)};
      records.push_back(std::move(record));
    }
  return records;
}

const Section* section_in(const Document& document) {
  const auto found = std::ranges::find(document.sections, "target-workers", &Section::id);
  return found == document.sections.end() ? nullptr : &*found;
}

// Of one worker batch 128 is best, of two 192: 400 (1 + 800 / 192) 0.116 s = 240 s.
TEST(TargetWorkers, HasAPointForEachNumber) {
  auto records = timed_records();
  for (auto& record : trained_records()) records.push_back(std::move(record));
  const auto document = build(records);
  const auto* section = section_in(document);
  ASSERT_NE(section, nullptr);
  const auto& said = std::get<Paragraph>(section->blocks[0]).text;
  EXPECT_THAT(said, HasSubstr("to accuracy 0.9 soonest: predicted "));
  const auto& table = std::get<Table>(section->blocks[1]);
  ASSERT_GE(table.rows.size(), 2u);
  EXPECT_EQ(*table.rows[0][1].value, 128);
  EXPECT_EQ(*table.rows[1][1].value, 192);
  EXPECT_NEAR(*table.rows[1][6].value, 240, 5);
  EXPECT_LE(*table.rows[1][6].low, *table.rows[1][6].value);
  EXPECT_GE(*table.rows[1][6].high, *table.rows[1][6].value);
  EXPECT_EQ(table.rows[1][5].text, "0.1") << "the rate of the trained batches beside it";
  const auto& plot = std::get<Plot>(section->blocks[2]);
  EXPECT_EQ(plot.id, "target-time");
  EXPECT_EQ(plot.series[0].points.size(), table.rows.size());
}

TEST(TargetWorkers, NeedsCurveAndTimedSteps) {
  EXPECT_EQ(section_in(build(timed_records())), nullptr);
  EXPECT_EQ(section_in(build(trained_records())), nullptr);
}

}  // namespace
}  // namespace paceline::report
