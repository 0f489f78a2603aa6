/// --resume auto: one command for first start, middle and end.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "fixture.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/kept_record.h"

namespace paceline::train {
namespace {

using testing::Contains;
using testing::HasSubstr;

class AutoResumed : public TrainingTest {
 protected:
  [[nodiscard]] Options asked(const std::string& out) const {
    Options options = small(out);
    options.resume_auto = true;
    return options;
  }
  /// One call of the command, stopped at update `stop_at` (0: never). What was said.
  std::vector<std::string> call(const Options& options, std::int64_t stop_at = 0) {
    std::vector<std::string> said;
    std::stop_source stop;
    Progress progress;
    progress.say = [&](const std::string& text) { said.push_back(text); };
    progress.step = [&](std::int64_t step, std::int64_t, double, double) {
      if (step == stop_at) stop.request_stop();
    };
    status_ = train(options, stop.get_token(), progress).status;
    return said;
  }
  std::string status_;
};

TEST_F(AutoResumed, IsFirstStartMiddleAndEnd) {
  const std::string whole = checkpoint_of(small(), "whole");
  for (const int workers : {1, 2}) {
    Options options = asked("o" + std::to_string(workers));
    options.shard = 8;
    options.workers = workers;
    Options undisturbed = options;
    undisturbed.resume_auto = false;
    const std::string expected = checkpoint_of(undisturbed, "w" + std::to_string(workers));
    EXPECT_THAT(call(options, 3), Not(Contains(HasSubstr("resumed from"))));
    EXPECT_EQ(status_, "interrupted");
    EXPECT_THAT(call(options, 8), Contains(HasSubstr("resumed from")));
    EXPECT_EQ(status_, "interrupted");
    EXPECT_THAT(call(options), Contains(HasSubstr("resumed from")));
    EXPECT_EQ(status_, "complete");
    EXPECT_EQ(base::read_file(checkpoint_path(options.out, 10)), expected);
    const auto record = base::read_file(options.out / "record.json");
    EXPECT_THAT(call(options), Contains(HasSubstr("is complete; nothing is left to do")));
    EXPECT_EQ(status_, "complete");
    EXPECT_EQ(base::read_file(options.out / "record.json"), record);
  }
}

// A loss between the first record and the first checkpoint had no way on but another --out.
TEST_F(AutoResumed, BeginsAnewAfterALossBeforeTheFirstCheckpoint) {
  Options options = asked("o");
  const std::string whole = checkpoint_of(small(), "whole");
  std::filesystem::create_directory(options.out);
  for (const std::string left : {"", "{}", "damaged"}) {
    if (!left.empty()) base::write_file(options.out / "record.json", std::string_view(left));
    (void)call(options);
    EXPECT_EQ(status_, "complete");
    EXPECT_EQ(base::read_file(checkpoint_path(options.out, 10)), whole);
    EXPECT_EQ(std::filesystem::exists(options.out / kLostRecord), !left.empty());
    std::filesystem::remove_all(options.out);
  }
  measure::Record begun;
  begun.status = "interrupted";
  begun.reason = kNoReportedError;
  measure::write_record(options.out / "record.json", begun);
  EXPECT_THAT(
      call(options),
      Contains(HasSubstr("was lost before its first checkpoint: this one starts from the beginning")));
  EXPECT_EQ(base::read_file(checkpoint_path(options.out, 10)), whole);
}

TEST_F(AutoResumed, BeginsAnewWhereNoCheckpointIsWhole) {
  Options options = asked("o");
  const std::string whole = checkpoint_of(small(), "whole");
  (void)call(options, 3);
  for (const auto& path : checkpoints_in(options.out)) base::write_file(path, std::string_view("damaged"));
  EXPECT_THAT(call(options), Contains(HasSubstr("which is kept as damaged-checkpoint-")));
  EXPECT_EQ(base::read_file(checkpoint_path(options.out, 10)), whole);
}

TEST_F(AutoResumed, WritesTheRecordThatALostRunCouldNot) {
  Options options = asked("o");
  (void)call(options);
  std::filesystem::remove(options.out / "record.json");
  (void)call(options);
  EXPECT_EQ(status_, "complete");
  EXPECT_EQ(measure::read_record(options.out / "record.json").status, "complete");
}

TEST_F(AutoResumed, IsFinishedWhereTheTrainingWasStoppedEarlyOrKeepsNoCheckpoints) {
  Options options = asked("early");
  options.validation_split = 0.25;
  options.steps = 0;
  options.epochs = 30;
  options.lr = 1;
  options.early_stopping = 1;
  (void)call(options);
  ASSERT_LT(measure::read_record(options.out / "record.json").epochs.size(), 30u);
  EXPECT_THAT(call(options), Contains(HasSubstr("nothing is left to do")));
  Options none = asked("none");
  none.save_checkpoints = false;
  (void)call(none);
  EXPECT_THAT(call(none), Contains(HasSubstr("nothing is left to do")));
  none.lr = 0.01;
  EXPECT_THAT(refusal(none), HasSubstr("the complete record of a training with other settings"));
}

TEST_F(AutoResumed, StillRefusesAnotherTraining) {
  Options options = asked("o");
  (void)call(options, 3);
  options.seed = 7;
  EXPECT_THAT(refusal(options), HasSubstr("--seed was 0 in its run, but is 7 in this one"));
  options.out.clear();
  EXPECT_THAT(refusal(options), HasSubstr("give --out DIR"));
}

}  // namespace
}  // namespace paceline::train
