#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/resource.h>

#include <chrono>
#include <numeric>
#include <thread>
#include <utility>

#include "base/error.h"
#include "fixture.h"
#include "train/checkpoint.h"

namespace paceline::train {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class Run : public TrainingTest {
 protected:
  /// The bytes of the last checkpoint that a training of `options` leaves.
  std::string checkpoint_of(Options options, const std::string& out) {
    options.out = directory_ / out;
    (void)train(options);
    return base::read_file(options.out / "checkpoint-00000010.safetensors");
  }

  static std::string refusal(const Options& options) {
    try {
      (void)train(options);
    } catch (const base::Error& error) {
      return error.what();
    }
    return "accepted";
  }
};

TEST_F(Run, LearnsAndLeavesOneEpochRecordAnEpoch) {
  Options options = small();
  options.steps = 0;
  options.epochs = 3;
  const auto record = train(options);
  EXPECT_EQ(record.status, "complete");
  ASSERT_EQ(record.epochs.size(), 3u);
  EXPECT_EQ(record.epochs[2].updates, 18);
  EXPECT_LT(record.epochs[2].train_loss, record.epochs[0].train_loss);
  EXPECT_EQ(record.steps.size(), 18u);
}

TEST_F(Run, TwiceGivesTheSameBits) {
  for (const int workers : {1, 2}) {
    Options options = small();
    options.workers = workers;
    const std::string out = std::to_string(workers);
    EXPECT_EQ(checkpoint_of(options, out + "a"), checkpoint_of(options, out + "b")) << workers << " workers";
  }
}

TEST_F(Run, WithShardsGivesTheSameBitsForAnyNumberOfWorkersAndThreads) {
  Options options = small();
  options.shard = 4;
  options.threads = 1;
  const std::string one = checkpoint_of(options, "one");
  for (const int workers : {1, 2, 4})
    for (const int threads : {1, 2}) {
      options.workers = workers;
      options.threads = threads;
      EXPECT_EQ(checkpoint_of(options, fmt::format("{}-{}", workers, threads)), one)
          << workers << " workers, " << threads << " threads each";
    }
}

TEST_F(Run, WithShardsAndSharedStatisticsGivesTheSameBitsForAnyNumberOfWorkersAndThreads) {
  Options options = small();
  options.shard = 4;
  options.threads = 1;
  const std::string alone = checkpoint_of(options, "alone");
  options.batch_norm = engine::BatchNormMode::synchronised;
  const std::string one = checkpoint_of(options, "one");
  EXPECT_NE(one, alone);  // statistics of 16 samples are others than those of 4
  for (const int workers : {1, 2, 4})
    for (const int threads : {1, 2}) {
      options.workers = workers;
      options.threads = threads;
      EXPECT_EQ(checkpoint_of(options, fmt::format("{}-{}", workers, threads)), one)
          << workers << " workers, " << threads << " threads each";
    }
}

/// A whitened, frozen first layer, rates, reflected crops, alternating flips, views: as in cifar10-speedrun.
Options speedrun(Options options, const std::filesystem::path& directory) {
  const auto model = directory / "white.toml";
  base::write_file(model, std::string_view(R"(
[[layer]]
op = "conv2d"
name = "white"
channels = 24
kernel = 2
init = "whiten"
weight_rate = 0
[[layer]]
op = "gelu"
[[layer]]
op = "conv2d"
name = "conv"
channels = 16
stride = 3
init = "dirac"
[[layer]]
op = "batch_norm"
name = "norm"
weight_rate = 0
bias_rate = 8
[[layer]]
op = "gelu"
[[layer]]
op = "max_pool"
kernel = 3
[[layer]]
op = "dense"
name = "head"
features = "classes"
init = "zero"
)"));
  options.model = model.string();
  options.shard = 4;
  options.threads = 1;
  options.crop_padding = 2;
  options.crop_fill = data::CropFill::reflect;
  options.flip = data::Flip::alternating;
  options.test_views = 2;
  return options;
}

TEST_F(Run, SpeedrunGivesTheSameBitsForAnyNumberOfWorkersAndResumed) {
  Options options = speedrun(small(), directory_);
  const std::string one = checkpoint_of(options, "one");
  const auto loss = train(options).epochs.back().test_loss.value();
  for (const int workers : {2, 4}) {
    options.workers = workers;
    EXPECT_EQ(checkpoint_of(options, std::to_string(workers)), one) << workers << " workers";
    EXPECT_EQ(train(options).epochs.back().test_loss.value(), loss) << workers << " workers";
  }
  options.out = directory_ / "parts";
  options.steps = 4;
  (void)train(options);
  options.resume = options.out;
  options.steps = 10;
  EXPECT_EQ(checkpoint_of(options, "parts"), one);
}

// Stopped between two looks: the slow weights are others than the trained ones then, and must come back.
TEST_F(Run, WithLookaheadResumedGivesTheBitsOfTheUninterruptedRun) {
  Options options = small();
  const std::string without = checkpoint_of(options, "without");
  options.lookahead = {.steps = 3, .keep = 0.7, .power = 1};
  options.shard = 4;
  const std::string whole = checkpoint_of(options, "whole");
  EXPECT_NE(whole, without);
  options.workers = 2;
  options.out = directory_ / "parts";
  std::stop_source stop;
  Progress progress;
  progress.step = [&](std::int64_t step, std::int64_t, double, double) {
    if (step == 4) stop.request_stop();
  };
  const auto part = train(options, stop.get_token(), progress);
  EXPECT_EQ(part.status, "interrupted");
  EXPECT_NE(part.epochs.back().updates % 3, 0);
  options.resume = options.out;
  EXPECT_EQ(checkpoint_of(options, "parts"), whole);
  EXPECT_THAT(whole, HasSubstr("lookahead.bn1.running_mean"));
}

TEST_F(Run, EveryAugmentationOptionChangesTheTraining) {
  const Options plain = small();
  const std::string usual = checkpoint_of(plain, "usual");
  const auto with = [&](const std::string& out, const auto& change) {
    Options options = plain;
    change(options);
    return checkpoint_of(options, out);
  };
  EXPECT_NE(with("crop", [](Options& o) { o.crop_padding = 1; }), usual);
  EXPECT_NE(with("fill", [](Options& o) { o.crop_fill = data::CropFill::reflect; }), usual);
  EXPECT_NE(with("flip", [](Options& o) { o.flip = data::Flip::alternating; }), usual);
  EXPECT_EQ(with("same", [](Options& o) { o.crop_padding = 4, o.flip = data::Flip::random; }), usual);
  EXPECT_EQ(with("views", [](Options& o) { o.test_views = 6; }), usual);
}

TEST_F(Run, RefusesMoreViewsThanTheEngineTakesAtOnce) {
  Options options = small();
  options.shard = 4;
  options.test_views = 6;
  EXPECT_THAT(refusal(options),
              HasSubstr("shows each test image in 6 forms at once, and the shard is only 4"));
}

TEST_F(Run, GivesTheSameBitsForAnyNumberOfThreads) {
  Options options = small();
  options.threads = 1;
  const std::string one = checkpoint_of(options, "one");
  for (const int threads : {2, 3}) {
    options.threads = threads;
    EXPECT_EQ(checkpoint_of(options, std::to_string(threads)), one) << threads << " threads";
  }
}

TEST_F(Run, WithoutBatchNormGivesTheSameLossesForAnyNumberOfWorkersUpToRounding) {
  Options options = small();
  options.batch_norm = engine::BatchNormMode::synchronised;  // local statistics would differ by design
  options.log_steps = true;
  const auto one = train(options);
  options.workers = 4;
  const auto four = train(options);
  ASSERT_EQ(one.steps.size(), four.steps.size());
  for (std::size_t i = 0; i < one.steps.size(); ++i)
    EXPECT_NEAR(four.steps[i].loss, one.steps[i].loss, 1e-3 * one.steps[i].loss) << "step " << i + 1;
}

TEST_F(Run, EvaluatesEveryTestSampleOnceForAnyNumberOfWorkers) {
  Options options = small();
  options.lr = 0;  // the first weights stay: every width evaluates the same model, but for running statistics
  options.shard = 4;
  std::vector<double> losses;
  for (const int workers : {1, 2, 4}) {
    options.workers = workers;
    losses.push_back(train(options).epochs.back().test_loss.value());
  }
  EXPECT_EQ(losses[0], losses[1]);
  EXPECT_EQ(losses[0], losses[2]);
}

TEST_F(Run, ClosesTheLedgerOfEveryRankWithinOnePerCent) {
  Options options = small();
  options.workers = 3;
  options.global_batch = 24;
  options.window_steps = 12;
  options.warmup_steps = 2;
  const auto record = train(options);
  ASSERT_EQ(record.ranks.size(), 3u);
  EXPECT_EQ(record.window.steps, 12);
  for (const auto& rank : record.ranks) {
    const double sum = std::accumulate(rank.phases.begin(), rank.phases.end(), 0.0);
    EXPECT_NEAR(sum, rank.wall_s, 0.01 * rank.wall_s);
    EXPECT_EQ(rank.step_s.size(), 12u);
    EXPECT_GT(rank.communication_s, 0);
    EXPECT_NEAR(rank.transfer_s + rank.late_peer_s, rank.communication_s, 1e-6 + 0.01 * rank.communication_s);
  }
  EXPECT_GT(record.communication.bytes_sent, 0);
  EXPECT_TRUE(record.communication.memory_ceiling_gb_per_s.has_value());
}

TEST_F(Run, ResumedGivesTheBitsOfTheUninterruptedRun) {
  Options options = small();
  const std::string whole = checkpoint_of(options, "whole");
  options.out = directory_ / "parts";
  options.steps = 4;  // inside the first epoch of 6 steps
  (void)train(options);
  options.resume = options.out;
  EXPECT_EQ(checkpoint_of(
                [&] {
                  Options rest = options;
                  rest.steps = 10;
                  return rest;
                }(),
                "parts"),
            whole);
}

TEST_F(Run, AResumedEpochIsOneWholeEpochOfBothParts) {
  Options options = small("whole");
  options.steps = 12;
  const auto whole = train(options);
  options.out = directory_ / "parts";
  options.steps = 4;  // of the first epoch's 6
  const auto part = train(options);
  EXPECT_EQ(part.epochs.at(0).steps, 4);
  options.resume = options.out;
  options.steps = 12;
  const auto rest = train(options);
  ASSERT_EQ(rest.epochs.size(), 2u);
  EXPECT_EQ(rest.epochs[0].steps, 6);
  EXPECT_EQ(rest.epochs[0].updates, 6);
  EXPECT_GT(rest.epochs[0].seconds, part.epochs[0].seconds);
  EXPECT_NEAR(rest.epochs[0].train_loss, whole.epochs[0].train_loss, 1e-9);
  EXPECT_NEAR(rest.epochs[0].train_accuracy, whole.epochs[0].train_accuracy, 1e-9);
  EXPECT_EQ(rest.epochs[0].test_loss, whole.epochs[0].test_loss);
}

TEST_F(Run, AResumedEpochStaysAPartWhereTheFirstPartIsNotKnown) {
  Options options = small("parts");
  options.steps = 4;
  (void)train(options);
  std::filesystem::remove(options.out / "record.json");
  options.resume = options.out;
  options.steps = 12;
  const auto rest = train(options);
  ASSERT_EQ(rest.epochs.size(), 2u);
  EXPECT_EQ(rest.epochs[0].updates, 6);
  EXPECT_EQ(rest.epochs[0].steps, 2);
  EXPECT_EQ(rest.epochs[1].steps, 6);
}

TEST_F(Run, AFailedResumeKeepsTheEpochsBeforeIt) {
  Options options = small("o");
  options.steps = 12;
  (void)train(options);
  options.resume = options.out;
  options.steps = 24;
  options.lr = 1e30;
  EXPECT_THROW((void)train(options), base::Error);
  const auto kept = measure::read_record(options.out / "record.json");
  EXPECT_EQ(kept.status, "failed");
  ASSERT_EQ(kept.epochs.size(), 2u);
  EXPECT_EQ(kept.epochs[1].updates, 12);
}

TEST_F(Run, RefusesADirectoryThatHoldsAnotherRun) {
  Options options = small("o");
  (void)train(options);
  const auto before = checkpoints_in(options.out);
  EXPECT_THAT(refusal(options), AllOf(HasSubstr("holds another run (checkpoint-00000010.safetensors)"),
                                      HasSubstr("--resume " + options.out.string())));
  EXPECT_EQ(checkpoints_in(options.out), before);
  for (const auto& path : before) std::filesystem::remove(path);
  EXPECT_THAT(refusal(options), HasSubstr("no checkpoint to go on from; give another --out"));
}

TEST_F(Run, ResumedRemovesOnlyItsOwnCheckpoints) {
  Options options = small("o");
  options.steps = 12;
  (void)train(options);
  options.resume = options.out;
  options.steps = 30;
  (void)train(options);
  const auto path = [out = options.out](int update) { return checkpoint_path(out, update); };
  EXPECT_THAT(checkpoints_in(options.out), ElementsAre(path(30), path(24), path(6)));
  // From one that is not the newest there, what is newer would be taken for this run's.
  options.resume = path(24);
  options.steps = 36;
  EXPECT_THAT(refusal(options), HasSubstr("holds checkpoint-00000030.safetensors, newer than"));
  options.out = directory_ / "elsewhere";
  EXPECT_EQ(train(options).epochs.back().updates, 36);
  EXPECT_TRUE(std::filesystem::exists(path(24)));
}

TEST_F(Run, RefusesToResumeWhatIsDoneOrWasAnotherTraining) {
  Options options = small("o");
  (void)train(options);
  const auto record = base::read_file(options.out / "record.json");
  options.resume = options.out;
  EXPECT_THAT(refusal(options), HasSubstr("is already at update 10 of 10; give more --epochs or --steps"));
  options.steps = 20;
  Options other = options;
  other.seed = 7;
  EXPECT_THAT(refusal(other), HasSubstr("--seed was 0 in its run and is 7 in this one"));
  other = options;
  other.global_batch = 8;
  EXPECT_THAT(refusal(other), HasSubstr("the global batch was 16 in its run and is 8 in this one"));
  other = options;
  other.data = "synthetic,train=112,test=40";
  EXPECT_THAT(refusal(other), HasSubstr("the number of training samples was 96 in its run and is 112"));
  other = options;
  other.rule.kind = engine::UpdateKind::adam;
  EXPECT_THAT(refusal(other), HasSubstr("--optimizer was sgd in its run and is adam"));
  EXPECT_EQ(base::read_file(options.out / "record.json"), record) << "a refused run has written a record";
}

TEST_F(Run, SaysThatAResumedTrainingHasAnotherLearningRate) {
  Options options = small("o");
  (void)train(options);
  options.resume = options.out;
  options.steps = 12;
  options.lr = 0.025;
  EXPECT_THAT(train(options).notes,
              Contains("the learning rate's peak is 0.025 from here on; it was 0.05 up to update 10"));
}

TEST_F(Run, KeepsRecordAndCheckpointWhenItIsStopped) {
  Options options = small("stopped");
  options.workers = 2;
  options.steps = 100000;
  std::stop_source stop;
  Progress progress;
  progress.step = [&](std::int64_t step, std::int64_t, double, double) {
    if (step == 8) stop.request_stop();
  };
  const auto record = train(options, stop.get_token(), progress);
  EXPECT_EQ(record.status, "interrupted");
  const auto kept = measure::read_record(options.out / "record.json");
  EXPECT_EQ(kept.status, "interrupted");
  EXPECT_EQ(kept.epochs.size(), 2u);
  EXPECT_TRUE(std::filesystem::exists(options.out / "checkpoint-00000009.safetensors") ||
              std::filesystem::exists(options.out / "checkpoint-00000008.safetensors"));
}

TEST_F(Run, SaysStepLearningRateAndLastCheckpointWhenTheLossIsNoLongerFinite) {
  Options options = small("diverged");
  options.steps = 0;
  options.epochs = 50;
  options.lr = 1e30;
  try {
    (void)train(options);
    FAIL() << "a learning rate of 1e30 does not diverge";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("the loss is no longer finite"));
    EXPECT_THAT(error.what(), Not(HasSubstr("-nan")));
    EXPECT_THAT(error.what(), HasSubstr("learning rate 1e+30"));
    EXPECT_THAT(error.what(), HasSubstr("checkpoint"));
  }
  EXPECT_EQ(measure::read_record(options.out / "record.json").status, "failed");
}

TEST_F(Run, DoesNotKeepWeightsThatAreNotFinite) {
  Options options = small("o");
  options.steps = 1;  // its loss is that of the first weights, and finite
  options.lr = 1e39;  // as a float: infinite
  options.evaluate_every = 0;
  for (const int workers : {1, 2}) {
    options.workers = workers;
    EXPECT_THAT(refusal(options), AllOf(HasSubstr("step 1 of 1: the weights are no longer finite"),
                                        HasSubstr("checkpoint is none (none was written)")));
    EXPECT_THAT(checkpoints_in(options.out), ElementsAre());
    std::filesystem::remove_all(options.out);
  }
}

TEST_F(Run, DoesNotKeepWeightsWhoseTestLossIsNotFinite) {
  Options options = small("o");
  options.steps = 1;
  options.lr = 1e30;  // the weights are finite, what they make of an image is not
  EXPECT_THAT(refusal(options),
              AllOf(HasSubstr("step 1 of 1: the test loss is no longer finite ("), Not(HasSubstr("-nan"))));
  EXPECT_THAT(checkpoints_in(options.out), ElementsAre());
}

/// An engine whose optimizer state takes long to read, as a checkpoint takes long on a slow disk.
class SlowToKeep final : public engine::Engine {
 public:
  explicit SlowToKeep(std::unique_ptr<engine::Engine> engine) : engine_(std::move(engine)) {}
  std::span<float> optimizer_state(int slot) override {
    if (!std::exchange(slept_, true)) std::this_thread::sleep_for(std::chrono::milliseconds(2200));
    return engine_->optimizer_state(slot);
  }
  std::string name() const override { return engine_->name(); }
  const graph::Graph& graph() const override { return engine_->graph(); }
  const graph::Layout& layout() const override { return engine_->layout(); }
  const graph::MemoryPlan& plan() const override { return engine_->plan(); }
  std::span<float> weights() override { return engine_->weights(); }
  std::span<float> gradients() override { return engine_->gradients(); }
  void weights_changed() override { engine_->weights_changed(); }
  engine::LossSums forward(const engine::StepInput& input) override { return engine_->forward(input); }
  void backward(const engine::GradientReady& on_ready) override { engine_->backward(on_ready); }
  void update(const engine::UpdateRule& rule, double lr, std::int64_t update) override {
    engine_->update(rule, lr, update);
  }
  engine::LossSums evaluate(std::span<const float> images, std::span<const std::int32_t> labels, int count,
                            int views) override {
    return engine_->evaluate(images, labels, count, views);
  }
  void observe(engine::OpObserver observer) override { engine_->observe(std::move(observer)); }

 private:
  std::unique_ptr<engine::Engine> engine_;
  bool slept_ = false;
};

TEST_F(Run, WaitsForACheckpointLongerThanTheDeadlineAndBooksItAsOne) {
  Options options = small("o");
  options.workers = 2;
  options.steps = 6;
  options.deadline_s = 1;
  auto backend = backend_of("cpu");
  backend.compile = [compile = backend.compile](const auto& graph, const auto& how) {
    return std::make_unique<SlowToKeep>(compile(graph, how));
  };
  const auto record = run(options, backend, {}, {});
  EXPECT_EQ(record.status, "complete");
  for (const auto& rank : record.ranks) {
    EXPECT_GE(rank.phases[static_cast<std::size_t>(measure::Phase::checkpoint)], 2.2) << "rank " << rank.rank;
    EXPECT_LT(rank.phases[static_cast<std::size_t>(measure::Phase::exposed_wait)], 2.2)
        << "rank " << rank.rank;
  }
}

TEST_F(Run, LeavesThePeakOfMemoryOutWhereItCannotStartAnew) {
  // No file can be opened between the last word before the first step and that step.
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  Progress progress;
  progress.say = [&](const std::string&) {
    const rlimit none{.rlim_cur = 0, .rlim_max = before.rlim_max};
    ::setrlimit(RLIMIT_NOFILE, &none);
  };
  progress.step = [&](std::int64_t, std::int64_t, double, double) { ::setrlimit(RLIMIT_NOFILE, &before); };
  const auto record = train(small(), {}, progress);
  ::setrlimit(RLIMIT_NOFILE, &before);
  EXPECT_FALSE(record.memory.peak_bytes.has_value());
  EXPECT_THAT(record.notes, Contains(HasSubstr("peak memory is not measured")));
}

TEST_F(Run, RefusesAPlanLargerThanTheMemoryWithBothNumbersAndTheLargestBatchThatFits) {
  Options options = small();
  options.data = "synthetic,train=50000000,test=40";
  options.global_batch = 40000000;
  try {
    (void)train(options);
    FAIL() << "40 million samples a batch fit";
  } catch (const base::Error& error) {
    EXPECT_EQ(error.kind(), base::ErrorKind::device);
    EXPECT_THAT(error.what(), HasSubstr("the largest local batch that fits is "));
  }
}

}  // namespace
}  // namespace paceline::train
