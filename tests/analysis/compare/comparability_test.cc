#include "analysis/compare/comparability.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "golden/records.h"
#include "measure/setting.h"

namespace paceline::analysis {
namespace {

using golden::make_record;
using golden::make_training;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

TEST(Comparability, LetsWorkersAndBatchesDiffer) {
  const auto verdict =
      compare(make_record({.workers = 1}), make_record({.workers = 2, .local_batch = 64}), Topic::scaling);
  EXPECT_TRUE(verdict.comparable());
  EXPECT_THAT(verdict.remarks, IsEmpty());
}

TEST(Comparability, RefusesWhatChangesTheTimeAndNamesIt) {
  for (const char* option :
       {"loader-threads", "bucket-mb", "augment", "optimizer", "bn", "an-option-of-the-future"}) {
    auto other = make_record({.workers = 2});
    other.settings[option] = "another";
    const auto verdict = compare(make_record({}), other, Topic::scaling);
    EXPECT_FALSE(verdict.comparable()) << option;
    EXPECT_THAT(verdict.refusals, Contains(HasSubstr(fmt::format("--{} is", option))));
  }
}

TEST(Comparability, RemarksWhatDoesNotChangeTheTime) {
  auto other = make_record({.workers = 2});
  other.settings["lr"] = "0.2";
  const auto verdict = compare(make_record({}), other, Topic::scaling);
  EXPECT_TRUE(verdict.comparable());
  EXPECT_THAT(verdict.remarks, Contains("--lr is 0.1 in the baseline and 0.2 here"));
}

// A study of one process for all: its one worker has nobody to be joined with, whatever the command said.
TEST(Comparability, OfAWorkerAloneHowOthersAreJoinedIsNoDifference) {
  const auto alone = make_record({});
  auto joined = make_record({.workers = 2});
  joined.settings["parallel"] = "data-parallel";
  joined.settings["placement"] = "spread";
  EXPECT_TRUE(compare(alone, joined, Topic::scaling).comparable());
  EXPECT_FALSE(compare(make_record({.workers = 2}), joined, Topic::scaling).comparable());
}

TEST(Comparability, DoesWithEveryDifferenceWhatTheTableOfSettingsSays) {
  using measure::Effect;
  using measure::Setting;
  const auto effect = [](const measure::Record& baseline, Setting setting, Topic topic) {
    auto other = baseline;
    other.settings[std::string(setting.key())] = "another";
    const auto verdict = compare(baseline, other, topic);
    if (!verdict.comparable()) return Effect::refuse;
    return verdict.remarks.empty() ? Effect::none : Effect::remark;
  };
  for (std::size_t row = 0; row < Setting::count(); ++row) {
    const auto setting = Setting::at(row);
    EXPECT_EQ(effect(make_record({.workers = 2}), setting, Topic::scaling), setting.on_time())
        << setting.key();
    EXPECT_EQ(effect(make_training({}), setting, Topic::convergence), setting.on_accuracy()) << setting.key();
  }
}

TEST(Comparability, RefusesAnotherMachineBuildModelDataOrPrecision) {
  const auto baseline = make_record({});
  const auto refusal = [&](auto change) {
    auto other = make_record({.workers = 2});
    change(other);
    const auto verdict = compare(baseline, other, Topic::scaling);
    return verdict.refusals.empty() ? std::string() : verdict.refusals.front();
  };
  EXPECT_THAT(refusal([](auto& r) { r.environment.cpu = "Other"; }), HasSubstr("another machine"));
  EXPECT_THAT(refusal([](auto& r) { r.environment.build = "Debug"; }),
              HasSubstr("build is Release, this one's is Debug"));
  EXPECT_THAT(refusal([](auto& r) { r.model.name = "resnet18"; }), HasSubstr("model is resnet18-cifar"));
  EXPECT_THAT(refusal([](auto& r) { r.data.name = "mnist"; }), HasSubstr("data is cifar10"));
  EXPECT_THAT(refusal([](auto& r) { r.data.train_samples = 60000; }), HasSubstr("epoch has 50000 samples"));
  EXPECT_THAT(refusal([](auto& r) { r.precision = "bf16"; }), HasSubstr("computed in fp32, this in bf16"));
}

// A file of layers that was edited between two runs keeps its name: a stride of 2 for a pooling has as many
// parameters and half the work, and "twice as fast" was said of it.
TEST(Comparability, RefusesAModelOfOtherWorkUnderTheSameName) {
  auto edited = make_record({.workers = 2});
  edited.model.training_flops /= 2;
  for (const Topic topic : {Topic::scaling, Topic::same_cores, Topic::tables, Topic::convergence})
    EXPECT_THAT(
        compare(make_record({}), edited, topic).refusals,
        Contains("training the baseline's resnet18-cifar takes 3340000000 FLOPs a sample, here it "
                 "takes 1670000000: another model of that name (its file has changed since) or images "
                 "of another size; measure both with the same one"));
  edited.model.training_flops = 0;  // a record of before they were counted
  EXPECT_TRUE(compare(make_record({}), edited, Topic::scaling).comparable());
}

TEST(Comparability, RefusesAProcessorWithOtherInstructions) {
  auto other = make_record({.workers = 2});  // the same name: a virtual machine hides some of them
  other.environment.instructions = {"avx2"};
  EXPECT_THAT(compare(make_record({}), other, Topic::scaling).refusals,
              Contains("the baseline's processor has the instruction sets avx2, avx512f, this one avx2"));
}

TEST(Comparability, RefusesAnotherDevice) {
  auto other = make_record({.workers = 2});  // the option may have left it open
  other.device = "gpu";
  EXPECT_THAT(compare(make_record({}), other, Topic::scaling).refusals,
              Contains("the baseline was computed on the device cpu, this on gpu"));
}

TEST(Comparability, RefusesAGpuOfAnotherName) {
  auto one = make_record({}), other = make_record({.workers = 2});
  one.device = other.device = "cuda";
  one.device_name = "NVIDIA A100-SXM4-80GB";
  other.device_name = "NVIDIA H100 80GB HBM3";
  EXPECT_THAT(compare(one, other, Topic::scaling).refusals,
              Contains("the baseline was computed on NVIDIA A100-SXM4-80GB, this on NVIDIA H100 80GB HBM3"));
  other.device_name = one.device_name;
  EXPECT_TRUE(compare(one, other, Topic::scaling).comparable());
}

/// A worker of the processor computes with its threads, one of a GPU does not.
TEST(Comparability, RemarksFewerThreadsOnlyWhereTheyCompute) {
  auto one = make_record({}), other = make_record({.workers = 2});
  one.threads_per_worker = 2;
  EXPECT_TRUE(compare(one, other, Topic::scaling).shares_cores);
  for (const char* device : {"cuda", "cuda:0", "cuda-on-host"}) {
    one.device = other.device = device;
    const auto verdict = compare(one, other, Topic::scaling);
    EXPECT_FALSE(verdict.shares_cores) << device;
    EXPECT_THAT(verdict.remarks, testing::IsEmpty()) << device;
  }
}

TEST(Comparability, RemarksWorkersThatShareAGpu) {
  auto one = make_record({}), other = make_record({.workers = 2});
  one.device = other.device = "cuda";
  one.memory.device = {.workers = 1};
  other.memory.device = {.workers = 2};
  EXPECT_THAT(
      compare(one, other, Topic::scaling).remarks,
      Contains("workers on the same GPU: 1 in the baseline and 2 here, so the ideal is not the number of "
               "workers"));
  other.memory.device->workers = 1;
  EXPECT_THAT(compare(one, other, Topic::scaling).remarks, testing::IsEmpty());
}

TEST(Comparability, RemarksMachinesThatOnlyMayBeUnlike) {
  const auto remark = [&](auto change) {
    auto other = make_record({.workers = 2});
    change(other.environment);
    const auto verdict = compare(make_record({}), other, Topic::scaling);
    EXPECT_TRUE(verdict.comparable());
    return verdict.remarks.empty() ? std::string() : verdict.remarks.front();
  };
  EXPECT_EQ(remark([](auto& e) { e.host = "node2"; }),
            "the baseline ran on host bench, this on node2: alike by name, and perhaps not as fast");
  EXPECT_EQ(remark([](auto& e) { e.memory_bytes *= 2; }), "the baseline had 8 GB of memory, this 16 GB");
  EXPECT_EQ(remark([](auto& e) { e.memory_bytes += 4096; }), "");
  EXPECT_THAT(remark([](auto& e) { e.os = "Debian GNU/Linux 13"; }),
              HasSubstr("here Debian GNU/Linux 13 by GCC"));
  EXPECT_THAT(remark([](auto& e) { e.compiler = "GCC 14"; }), HasSubstr("by GCC 14"));
}

TEST(Comparability, ComparesThePrecisionThatWasUsed) {
  auto automatic = make_record({.workers = 2});
  automatic.settings["precision"] = "auto";
  EXPECT_TRUE(compare(make_record({}), automatic, Topic::scaling).comparable());
  automatic.precision = "bf16";
  EXPECT_FALSE(compare(make_record({}), automatic, Topic::scaling).comparable());
}

TEST(Comparability, LetsTheLengthOfTheWindowDiffer) {
  for (const Topic topic : {Topic::scaling, Topic::sweep, Topic::convergence}) {
    auto other = make_record({.local_batch = 256});
    for (const char* name : {"window-seconds", "window-steps", "warmup-steps", "seed"})
      other.settings[name] = "77";
    EXPECT_TRUE(compare(make_record({}), other, topic).comparable());
  }
}

TEST(Comparability, RefusesOtherWorkersInsideASweep) {
  EXPECT_FALSE(compare(make_record({}), make_record({.workers = 2}), Topic::sweep).comparable());
  EXPECT_TRUE(compare(make_record({}), make_record({.local_batch = 256}), Topic::sweep).comparable());
}

TEST(Comparability, ComparesAccuraciesAtEqualEpochsOnly) {
  const auto baseline = make_training({});
  const auto longer = make_training({.global_batch = 2048, .accuracies = {0.1, 0.2, 0.3, 0.4}});
  EXPECT_THAT(compare(baseline, longer, Topic::convergence).refusals,
              Contains("the baseline trained 3 epochs, this 4"));
}

TEST(Comparability, RefusesAccuraciesOfTwoPartsOfImages) {
  auto one = make_training({}), other = one;
  one.data.eval_resize = other.data.eval_resize = 256;
  EXPECT_TRUE(compare(one, other, Topic::convergence).comparable());
  other.data.eval_resize = 232;
  EXPECT_THAT(
      compare(one, other, Topic::convergence).refusals,
      Contains("the baseline was tested on the centre of images resized to 256, this on the centre of images "
               "resized to 232: give both one eval-resize"));
  other.data.eval_resize.reset();  // also those of before
  EXPECT_THAT(compare(other, one, Topic::time_to_accuracy).refusals,
              Contains(HasSubstr("as much of each image as fits, this on the centre")));
  other = one;
  other.data.eval_size = "288x288";
  EXPECT_THAT(compare(one, other, Topic::convergence).refusals,
              Contains(HasSubstr("tested on images of the training's size, this of 288x288")));
}

TEST(Comparability, RefusesAccuraciesOfOtherClassWeights) {
  auto one = make_training({}), other = one;
  other.settings["sampler"] = "balanced";
  EXPECT_FALSE(compare(one, other, Topic::convergence).comparable());
  other.settings.erase("sampler");
  one.settings["class-weights"] = other.settings["class-weights"] = "weights.csv";
  one.data.class_weights = {0.5, 2};
  other.data.class_weights = {0.5, 2};
  EXPECT_TRUE(compare(one, other, Topic::convergence).comparable());
  other.data.class_weights = {0.75, 1.5};  // another file of this name
  EXPECT_THAT(compare(one, other, Topic::convergence).refusals,
              Contains(HasSubstr("--class-weights hold other")));
}

TEST(Comparability, LetsRemediesAndExecutionDifferBetweenAccuracies) {
  auto other = make_training({.variant = "+ LARS", .workers = 2, .global_batch = 2048});
  other.settings["optimizer"] = "lars";
  other.settings["warmup"] = "1";
  other.settings["loader-threads"] = "4";
  EXPECT_TRUE(compare(make_training({}), other, Topic::convergence).comparable());
  other.settings["augment"] = "false";
  EXPECT_FALSE(compare(make_training({}), other, Topic::convergence).comparable());
}

TEST(Comparability, ComparesAccuraciesOverSecondsOfOneMachineWhateverTheEpochs) {
  const auto one = make_training({.accuracies = {0.5}});
  auto other = make_training({.workers = 2, .global_batch = 2048, .accuracies = {0.4, 0.5}});
  other.settings["epochs"] = "2";
  other.settings["threads"] = "2";
  other.settings["bn"] = "sync";
  EXPECT_TRUE(compare(one, other, Topic::time_to_accuracy).comparable());
  auto augmented = other;
  augmented.settings["augment"] = "false";
  EXPECT_FALSE(compare(one, augmented, Topic::time_to_accuracy).comparable());
  auto tested = other;
  tested.data.test_samples += 1;
  EXPECT_FALSE(compare(one, tested, Topic::time_to_accuracy).comparable());
  other.environment.cpu = "another";
  EXPECT_FALSE(compare(one, other, Topic::time_to_accuracy).comparable());
}

// LARS measures its rate in units of |w| / |g|: "56.6 times the baseline's" compared it with SGD's.
TEST(Comparability, HoldsNoRateOfOneOptimizerAgainstThatOfAnother) {
  auto lars = make_training({.variant = "+ LARS", .global_batch = 2048, .factor = 56.6});
  lars.settings["optimizer"] = "lars";
  EXPECT_THAT(compare(make_training({}), lars, Topic::convergence).remarks,
              testing::Not(Contains(HasSubstr("learning rate"))));
  auto kept = make_training({.variant = "+ LARS", .global_batch = 2048});
  kept.settings["optimizer"] = "lars";
  EXPECT_THAT(compare(make_training({}), kept, Topic::convergence).remarks,
              testing::Not(Contains(HasSubstr("learning rate"))));
}

// An audit: 64 updates of two epochs beside 32 of one were "fewer updates at equal epochs".
TEST(Comparability, SpeaksOfEqualEpochsOnlyWhereTheyAre) {
  const auto one = golden::make_training({.accuracies = {0.5}});
  const auto two = golden::make_training({.accuracies = {0.5, 0.6}});
  EXPECT_THAT(compare(one, two, Topic::convergence).remarks,
              testing::Not(Contains(HasSubstr("at equal epochs"))));
  const auto half = golden::make_training({.global_batch = 64, .accuracies = {0.5}});
  EXPECT_THAT(compare(one, half, Topic::convergence).remarks, Contains(HasSubstr("more updates")));
}

}  // namespace
}  // namespace paceline::analysis
