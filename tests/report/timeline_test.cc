#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "golden/records.h"
#include "report/build.h"
#include "report/study_records.h"
#include "report/terminal_text.h"

namespace paceline::report {
namespace {

using golden::make_record;
using measure::Phase;
using measure::Record;
using testing::HasSubstr;
using testing::Not;

/// Repeats of 1 and of 2 workers; of two, rank 1 works so many seconds a step more than rank 0 (below 0: rank
/// 0 more than rank 1), one number a repeat, and the other waits for it.
std::vector<Record> scaled(const std::vector<double>& leads) {
  std::vector<Record> records;
  for (std::size_t repeat = 0; repeat < leads.size(); ++repeat)
    for (const int workers : {1, 2}) {
      const double lead = workers == 2 ? std::abs(leads[repeat]) : 0;
      auto record = make_record({.workers = workers,
                                 .repeat = static_cast<int>(repeat),
                                 .exposed_wait = lead,
                                 .communication = lead});
      if (workers == 2) {
        auto& phases = record.ranks[leads[repeat] > 0 ? 1 : 0].phases;
        const auto wait = static_cast<std::size_t>(Phase::exposed_wait);
        phases[static_cast<std::size_t>(Phase::backward)] += phases[wait];
        phases[wait] = 0;
      }
      golden::add_last_steps(record);
      records.push_back(std::move(record));
    }
  return records;
}

TEST(TimelineOfAStudy, IsOfTheOperatingPointAndOfItsBaseline) {
  const auto document = build(scaled({0, 0, 0}));
  const auto* best = find<Timeline>(document, "timeline");
  ASSERT_NE(best, nullptr);
  EXPECT_THAT(best->lanes,
              testing::ElementsAre("rank 0", "rank 0, all-reduce", "rank 1", "rank 1, all-reduce"));
  EXPECT_EQ(best->finding,
            "3 steps of 2 workers, a core each: over all repeats no rank is steadily later than the others");
  EXPECT_THAT(best->note, HasSubstr("scale-weak-w2-b128-r"));
  const auto* one = find<Timeline>(document, "timeline-baseline");
  ASSERT_NE(one, nullptr);
  EXPECT_THAT(one->lanes, testing::ElementsAre("rank 0"));
  EXPECT_EQ(one->finding, "3 steps of 1 worker, 1 core");
}

TEST(TimelineOfAStudy, NamesALateRankOnlyBeyondTheSpreadOfRepeats) {
  EXPECT_EQ(find<Timeline>(build(scaled({0.30, 0.31, 0.32})), "timeline")->finding,
            "Rank 1 comes late: the others wait 310.8 ms a step for it");
  EXPECT_THAT(find<Timeline>(build(scaled({0.5, -0.2, 0.1})), "timeline")->finding,
              HasSubstr("no rank is late beyond the spread of repeats"));
  EXPECT_THAT(find<Timeline>(build(scaled({0.3})), "timeline")->finding,
              HasSubstr("one repeat does not tell"));
}

TEST(TimelineOfAStudy, SaysWhatWasLeftOutAndHowClocksAgree) {
  auto records = scaled({0, 0, 0});
  for (auto& record : records) {
    record.last_steps->ranks_left_out = 1;
    for (auto& rank : record.last_steps->ranks) rank.clock_error_us = 12;
  }
  const auto document = build(records);
  EXPECT_THAT(find<Timeline>(document, "timeline")->note, HasSubstr("1 of 2 ranks are left out"));
  EXPECT_THAT(find<Timeline>(document, "timeline")->note, HasSubstr("Clocks agree within 12.0 us"));
}

TEST(TimelineOfAStudy, PrefersARecordThatNobodyDisturbed) {
  auto records = scaled({0, 0, 0});
  for (auto& record : records) record.window.others_cores = record.repeat == 1 ? 0.0 : 1.5;
  EXPECT_THAT(find<Timeline>(build(records), "timeline")->note, HasSubstr("scale-weak-w2-b128-r1"));
}

TEST(TimelineOfAStudy, IsAbsentOfOlderRecords) {
  auto records = scaled({0, 0, 0});
  for (auto& record : records) record.last_steps.reset();
  EXPECT_EQ(find<Timeline>(build(records), "timeline"), nullptr);
}

const Timeline kTwoLanes{
    .finding = "f",
    .lanes = {"rank 0", "rank 1"},
    .phases = {"forward", "backward", "exposed wait"},
    .spans = {{0, 0, 0, 0.01}, {0, 1, 0.01, 0.02}, {0, 2, 0.02, 0.04}, {1, 1, 0.02, 0.04}}};

TEST(Letters, StandForThePhaseThatTakesMostOfASlice) {
  EXPECT_EQ(drawn_in_letters(kTwoLanes, 48),
            "        0                                40.0 ms\n"
            "rank 0  FFFFFFFFFFBBBBBBBBBBwwwwwwwwwwwwwwwwwwww\n"
            "rank 1                      BBBBBBBBBBBBBBBBBBBB\n"
            "F=forward, B=backward, w=exposed wait\n");
}

TEST(Letters, OfNothingAreNone) { EXPECT_EQ(drawn_in_letters({}, 80), ""); }

TEST(Letters, StandInTerminalAndMarkdown) {
  const auto document = build(scaled({0.3, 0.3, 0.3}));
  EXPECT_THAT(to_terminal(document), HasSubstr("#=communication"));
  EXPECT_THAT(to_markdown(document), HasSubstr("```\n" + std::string(20, ' ') + "0"));
}

TEST(TimelineOfAStudy, HasAFileOfItsSpans) {
  const auto files = csv_files(build(scaled({0, 0, 0})));
  const auto file =
      std::find_if(files.begin(), files.end(), [](const auto& one) { return one.name == "timeline"; });
  ASSERT_NE(file, files.end());
  EXPECT_THAT(file->text, HasSubstr("lane,phase,begin [s],end [s]\n"));
  EXPECT_THAT(file->text, HasSubstr("\"rank 1, all-reduce\",communication,"));
}

}  // namespace
}  // namespace paceline::report
