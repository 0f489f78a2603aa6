#include "analysis/consistency.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "golden/records.h"

namespace paceline::analysis {
namespace {

using golden::make_record;
using golden::make_training;
using testing::HasSubstr;
using testing::IsEmpty;

std::string all(const measure::Record& record) {
  std::string text;
  for (const auto& finding : check(record)) text += (finding.is_error ? "E " : "W ") + finding.text + "\n";
  return text;
}

TEST(Consistency, FindsNothingInASoundRecord) {
  EXPECT_THAT(check(make_record({})), IsEmpty()) << all(make_record({}));
  EXPECT_THAT(check(make_record({.workers = 4})), IsEmpty());
  EXPECT_THAT(check(make_training({})), IsEmpty()) << all(make_training({}));
}

TEST(Consistency, NamesBatchesThatDoNotMultiply) {
  auto record = make_record({.workers = 2});
  record.global_batch = 128;
  EXPECT_THAT(all(record), HasSubstr("2 workers of local batch 128 do not make a global batch of 128"));
}

TEST(Consistency, NamesAnAccuracyThatIsNoCountOverTheTestSet) {
  auto record = make_training({});
  record.epochs.back().test_accuracy = 0.70123456;
  EXPECT_THAT(all(record), HasSubstr("no whole number of 10000 images"));
}

TEST(Consistency, NamesOtherProgramsThatWereAtWorkWhileItMeasured) {
  std::vector<measure::Record> records{make_record({}), make_record({.workers = 2}),
                                       make_record({.workers = 4})};
  records[0].window.others_cores = 0.02;
  records[0].environment.load_before = 1.9;  // of a build just before: no reason to doubt
  records[2].environment.load_before = 60;
  EXPECT_FALSE(busy(records).has_value());
  records[1].window.others_cores = 0.7;
  ASSERT_TRUE(busy(records).has_value());
  EXPECT_THAT(busy(records)->text, HasSubstr("in 1 of 2 measured windows (up to 0.7 of 2 cores"));
  records[1].environment.cores = 1;  // of a process that was bound to one: the others ran beside it too
  records[1].window.others_cores = 1.2;
  EXPECT_THAT(busy(records)->text, HasSubstr("(up to 1.2 cores"));
}

TEST(Consistency, NamesASlowLoaderBehindAFullQueue) {
  auto record = make_record({});
  record.window.warmup_steps = 1;
  record.ranks[0].loader_threads = 1;
  record.ranks[0].loader_prepare_s = 0.2 * record.ranks[0].wall_s;
  EXPECT_THAT(check(record), IsEmpty()) << all(record);
  record.ranks[0].loader_prepare_s = 0.9 * record.ranks[0].wall_s;
  EXPECT_THAT(all(record), HasSubstr("give --warmup-steps 3 or more"));
  record.window.warmup_steps = 3;
  EXPECT_THAT(check(record), IsEmpty()) << all(record);
}

TEST(Consistency, NamesAPeakFarFromThePlan) {
  auto record = make_record({});
  record.memory.peak_bytes = record.memory.plan_bytes * 5 / 4;
  EXPECT_THAT(all(record), HasSubstr("+25 % off the plan"));
}

TEST(Consistency, FindsNothingWrongWithWhatWasNotBegun) {
  auto record = make_record({.local_batch = 60000});
  EXPECT_FALSE(check(record).empty());
  record.status = "interrupted";
  record.ranks.clear();
  EXPECT_TRUE(check(record).empty());
}

}  // namespace
}  // namespace paceline::analysis
