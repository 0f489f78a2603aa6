#include "report/build.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "golden/records.h"
#include "report/study_records.h"

namespace paceline::report {
namespace {

using golden::make_record;
using measure::Record;
using testing::HasSubstr;
using testing::Not;

TEST(Loader, WasFastEnough) {
  const auto record = make_record({.kind = "train", .scaling = "", .data_wait = 0.2});
  const std::string text = text_of({record});
  EXPECT_THAT(text, HasSubstr("fast enough, scheduled late"));
  EXPECT_THAT(text, Not(HasSubstr("The loader is a limit")));
}

TEST(Loader, IsTheLimitAndWhatHelps) {
  // 3,657 images/s are used, 5,120 would be, a thread prepares 4,400: two threads would do 1.5 times that.
  const auto record = make_record({.kind = "train",
                                   .scaling = "",
                                   .forward = 0.0125,
                                   .backward = 0.0125,
                                   .update = 0,
                                   .data_wait = 0.01,
                                   .copy = 0,
                                   .other = 0,
                                   .jitter = {1, 1, 1}});
  const std::string text = text_of({record});
  EXPECT_THAT(text, HasSubstr("The loader is a limit: steps wait for data 28.6 % of their time; the loaders "
                              "could give 4,400 images/s, the steps would take 5,120. --loader-threads 2 (it "
                              "is 1) where cores are idle"));
}

TEST(Loader, NeedsMoreCoresThanThereAre) {
  golden::Run run{
      .forward = 0.0025, .backward = 0.0025, .update = 0, .data_wait = 0.025, .copy = 0, .other = 0};
  auto record = make_record(run);
  record.data.name = "folder";
  // 25,536 images/s are wanted, and a core prepares 4,840.
  EXPECT_THAT(
      text_of({record}),
      HasSubstr("A core prepares 4,840 images/s, so it would take 5.28 cores, and there are 2: images "
                "packed as pixels (paceline data pack --decoded) or a smaller size make it faster"));
  for (auto& rank : record.ranks) rank.loader_processor_s = 0.01 * rank.loader_prepare_s;
  EXPECT_THAT(
      text_of({record}),
      HasSubstr("Its threads computed for 1.0 % of that time and waited for the disk (or for a core) in the "
                "rest: --loader-threads 9 (it is 1)"));
  // Steps of almost no time would want thousands of threads: no number helps anybody then.
  run.forward = run.backward = 1e-6;
  record = make_record(run);
  for (auto& rank : record.ranks) rank.loader_processor_s = 0.01 * rank.loader_prepare_s;
  EXPECT_THAT(text_of({record}), HasSubstr("in the rest: More --loader-threads"));
}

TEST(Loader, IsTheLimitOfAnotherCell) {
  golden::Run run{.local_batch = 32,
                  .forward = 0.001,
                  .backward = 0.001,
                  .update = 0,
                  .data_wait = 0.006,
                  .copy = 0,
                  .other = 0};
  const std::vector<Record> records{make_record({}), make_record({.workers = 2}), make_record(run)};
  EXPECT_THAT(text_of(records),
              HasSubstr("The loader is a limit in 1 of 3 cells; at scale weak b 32, N 1: "));
}

}  // namespace
}  // namespace paceline::report
