// From where a run goes on, and what it refuses to go on from.

#include "train/checkpoint/resume_point.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <span>

#include "base/error.h"
#include "train/checkpoint/checkpoint.h"
#include "train/checkpoint/safetensors.h"
#include "train/fixture.h"
#include "train/prepare/prepare.h"

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
/// Trainings on a made-up kind of machine, for which --precision auto takes `of_auto`.
class PrecisionAfterAResume : public TrainingTest {
 protected:
  static MadeUpBackend machine(engine::Precision of_auto) {
    auto backend = backend_of("cpu");
    backend.auto_precision = of_auto;
    return backend;
  }
  /// A training in `precision` that is to go on elsewhere with the precision `then`.
  Options begun_in(const std::string& precision, const std::string& then) {
    Options options = small("o");
    options.precision = precision;
    (void)train(options);
    options.resume = options.out;
    options.steps = 12;
    options.precision = then;
    return options;
  }
  static std::vector<std::string> changed_settings(const measure::Record& record) {
    std::vector<std::string> names;
    for (const auto& change : record.changes.value()) names.push_back(change.setting);
    return names;
  }
  static std::string precision_of_checkpoint(const Options& options) {
    return read_checkpoint_info(options.out / "checkpoint-00000012.safetensors").precision;
  }
};

TEST_F(PrecisionAfterAResume, StaysThatOfTheCheckpointWhateverAutoTakesHere) {
  const auto options = begun_in("bf16", "auto");
  EXPECT_EQ(inspect(options, machine(engine::Precision::f32)).resolved.precision, engine::Precision::bf16)
      << "the plan";
  const auto record = run(options, machine(engine::Precision::f32), {}, {});
  EXPECT_EQ(record.precision, "bf16");
  EXPECT_EQ(precision_of_checkpoint(options), "bf16");
  EXPECT_EQ(changed_settings(record), std::vector<std::string>{"steps"}) << "auto changes no precision";
  EXPECT_THAT(record.notes, Contains("the precision stays bf16, that of the checkpoint; for a new run "
                                     "--precision auto takes fp32 here"));
}

TEST_F(PrecisionAfterAResume, StaysFp32WhereAutoTakesBf16AlsoByResumeAuto) {
  auto options = begun_in("fp32", "auto");
  options.resume.clear();
  options.resume_auto = true;
  const auto here = machine(engine::Precision::bf16);
  EXPECT_EQ(inspect(options, here).resolved.precision, engine::Precision::f32) << "the plan";
  const auto record = run(options, here, {}, {});
  EXPECT_EQ(record.precision, "fp32");
  EXPECT_EQ(precision_of_checkpoint(options), "fp32");
  EXPECT_THAT(record.notes, Contains("the precision stays fp32, that of the checkpoint; for a new run "
                                     "--precision auto takes bf16 here"));
  options.out = directory_ / "none";
  EXPECT_EQ(inspect(options, here).resolved.precision, engine::Precision::bf16)
      << "nothing to go on from: auto decides";
}

TEST_F(PrecisionAfterAResume, IsSaidAlsoWhereAutoTakesTheSame) {
  const auto record = run(begun_in("bf16", "auto"), machine(engine::Precision::bf16), {}, {});
  EXPECT_EQ(record.precision, "bf16");
  EXPECT_THAT(record.notes, Contains("the precision stays bf16, that of the checkpoint"));
}

TEST_F(PrecisionAfterAResume, IsTheGivenOneAndAChangeIsSaid) {
  const auto options = begun_in("bf16", "fp32");
  EXPECT_EQ(inspect(options, machine(engine::Precision::bf16)).resolved.precision, engine::Precision::f32);
  const auto record = run(options, machine(engine::Precision::bf16), {}, {});
  EXPECT_EQ(record.precision, "fp32");
  EXPECT_EQ(precision_of_checkpoint(options), "fp32");
  EXPECT_EQ(changed_settings(record), (std::vector<std::string>{"precision", "steps"}));
  EXPECT_THAT(record.notes, Contains("the precision is fp32 from here on; it was bf16 up to update 10"));
}

// Each process would take what is faster on its own kind of processor.
TEST_F(PrecisionAfterAResume, IsThatOfTheFirstProcess) {
  Options options = small();
  options.precision = "auto";
  auto backend = machine(engine::Precision::f32);
  backend.made_up->on_from_first = [](std::span<std::byte> bytes) {  // what a first process with bf16 sends
    const auto bf16 = engine::Precision::bf16;
    ASSERT_EQ(bytes.size(), sizeof bf16);
    std::ranges::copy(std::as_bytes(std::span(&bf16, 1)), bytes.begin());
  };
  const auto prepared = prepare(options, backend);
  EXPECT_EQ(prepared.resolved.precision, engine::Precision::bf16);
  EXPECT_EQ(prepared.record.precision, "bf16");
}

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
