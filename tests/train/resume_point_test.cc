// From where a run goes on, and what it refuses to go on from.

#include "train/resume_point.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "fixture.h"
#include "train/checkpoint.h"
#include "train/safetensors.h"

namespace paceline::train {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

class ResumePointOf : public TrainingTest {};

TEST_F(ResumePointOf, RefusesADirectoryThatHoldsAnotherRun) {
  Options options = small("o");
  (void)train(options);
  const auto before = checkpoints_in(options.out);
  EXPECT_THAT(refusal(options), AllOf(HasSubstr("holds another run (checkpoint-00000010.safetensors)"),
                                      HasSubstr("--resume " + options.out.string())));
  EXPECT_EQ(checkpoints_in(options.out), before);
  for (const auto& path : before) std::filesystem::remove(path);
  EXPECT_THAT(refusal(options), HasSubstr("no checkpoint to continue from; give another --out"));
}

TEST_F(ResumePointOf, RefusesToResumeWhatIsDoneOrWasAnotherTraining) {
  Options options = small("o");
  (void)train(options);
  const auto record = base::read_file(options.out / "record.json");
  options.resume = options.out;
  EXPECT_THAT(refusal(options), HasSubstr("is already at update 10 of 10; give more --epochs or --steps"));
  options.steps = 20;
  Options other = options;
  other.seed = 7;
  EXPECT_THAT(refusal(other), HasSubstr("--seed was 0 in its run, but is 7 in this one"));
  other = options;
  other.global_batch = 8;
  EXPECT_THAT(refusal(other), HasSubstr("the global batch was 16 in its run, but is 8 in this one"));
  other = options;
  other.data = "synthetic,train=112,test=40";
  EXPECT_THAT(refusal(other), HasSubstr("the number of training samples was 96 in its run, but is 112"));
  other = options;
  other.rule.kind = engine::UpdateKind::adam;
  EXPECT_THAT(refusal(other), HasSubstr("--optimizer was sgd in its run, but is adam"));
  EXPECT_EQ(base::read_file(options.out / "record.json"), record) << "a refused run has written a record";
}

TEST_F(ResumePointOf, SaysThatAResumedTrainingHasAnotherLearningRate) {
  Options options = small("o");
  (void)train(options);
  options.resume = options.out;
  options.steps = 12;
  options.lr = 0.025;
  EXPECT_THAT(train(options).notes,
              Contains("the learning rate's peak is 0.025 from here on; it was 0.05 up to update 10"));
}

// Both used to end in a failed assertion of the loader, or in an order of samples that no run has.
TEST_F(ResumePointOf, RefusesCountersThatNoRunCanHave) {
  Options options = small("parts");
  options.steps = 4;
  (void)train(options);
  options.steps = 10;
  const SafetensorsFile good(options.out / "checkpoint-00000004.safetensors");
  const auto path = directory_ / "damaged.safetensors";
  const auto with = [&](const char* key, const char* value) {  // with the right sum
    auto metadata = good.metadata();
    metadata[key] = value;
    write_safetensors(path, good.tensors(), metadata);
    options.out = directory_ / "rest";
    options.resume = path;
    return refusal(options);
  };
  EXPECT_THAT(with("step", "9"),
              AllOf(HasSubstr("damaged.safetensors: its next batch should be step 9 of epoch 0"),
                    HasSubstr("after 4 updates, which is impossible with 6 steps per epoch")));
  EXPECT_THAT(with("update", "5"), HasSubstr("after 5 updates"));
  EXPECT_THAT(with("epoch", "1"), HasSubstr("of epoch 1"));
}

// The missing tensors were said to be those of another model.
TEST_F(ResumePointOf, WithLookaheadWhereThereWasNoneNamesTheOption) {
  Options options = small("parts");
  options.steps = 4;
  (void)train(options);
  options.steps = 10;
  options.resume = options.out;
  options.lookahead.steps = 3;
  EXPECT_THAT(refusal(options), HasSubstr("--lookahead was off in its run, but is 3 in this one"));
}

TEST_F(ResumePointOf, TakesTheCheckpointBeforeOneThatIsCutShort) {
  Options options = small("parts");
  options.steps = 0;
  options.epochs = 2;
  (void)train(options);
  const auto newest = checkpoint_path(options.out, 12);
  std::filesystem::resize_file(newest, 100);
  options.resume = options.out;
  options.epochs = 3;
  EXPECT_THAT(train(options).notes,
              Contains(AllOf(HasSubstr("checkpoint-00000012.safetensors is not used"), HasSubstr("truncated"),
                             HasSubstr("continues from checkpoint-00000006.safetensors"))));
}

}  // namespace
}  // namespace paceline::train
