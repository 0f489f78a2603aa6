#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/error.h"
#include "engine/reference/engine.h"
#include "graph/layout.h"
#include "graph/zoo.h"
#include "train/given/resolve.h"

namespace paceline::train {
namespace {

using testing::HasSubstr;

constexpr RunConditions kMachine{.train_samples = 1000, .cores = 4};

std::string refusal(const Options& options) {
  try {
    (void)resolve(options, kMachine);
  } catch (const base::Error& error) {
    EXPECT_EQ(error.kind(), base::ErrorKind::usage);
    return error.what();
  }
  return "accepted";
}

TEST(Resolve, DerivesOneBatchFromTheOtherAndSaysWhichWasGiven) {
  const auto local = resolve({.workers = 4, .local_batch = 32}, kMachine);
  EXPECT_EQ(local.global_batch, 128);
  EXPECT_EQ(local.batch_given_as, "local");
  const auto global = resolve({.workers = 4, .global_batch = 64}, kMachine);
  EXPECT_EQ(global.local_batch, 16);
  EXPECT_EQ(global.batch_given_as, "global");
}

TEST(Resolve, RefusesSeveralProcessesWhereOneDrivesAllWorkers) {
  Options options{.workers = 4};
  options.data_parallel = true;
  EXPECT_EQ(refusal(options), "accepted");
  try {
    (void)resolve(options, {.train_samples = 1000, .cores = 4, .processes = 2});
    FAIL() << "two processes";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("--parallel data-parallel with 2 processes"));
    EXPECT_THAT(error.what(), HasSubstr("--workers 4"));
  }
}

TEST(Resolve, TimesWorkersThatSleepAndTrainsNothing) {
  Options options{.workers = 16, .local_batch = 8};
  options.emulate_compute = "forward=1ms,backward=1ms";
  EXPECT_THAT(refusal(options),
              HasSubstr("--emulate-compute times steps and trains nothing; give --window-steps"));
  options.window_steps = 5;
  EXPECT_EQ(refusal(options), "accepted");
  const auto run = resolve(options, {.train_samples = 1000, .cores = 1});
  EXPECT_EQ(run.threads, 1);
  EXPECT_FALSE(run.oversubscribed) << "16 workers that sleep fit on a core";
  const auto with = [&](auto change) {
    auto changed = options;
    change(changed);
    return refusal(changed);
  };
  EXPECT_THAT(with([](Options& o) { o.bucket_auto = true; }), HasSubstr("--bucket auto"));
  EXPECT_THAT(with([](Options& o) { o.shard = 4; }), HasSubstr("--shard 4"));
  EXPECT_THAT(with([](Options& o) { o.data_parallel = true; }), HasSubstr("--parallel data-parallel"));
  EXPECT_THAT(with([](Options& o) { o.device = "cuda:1"; }), HasSubstr("--device cuda:1"));
  EXPECT_THAT(with([](Options& o) { o.batch_norm = engine::BatchNormMode::synchronised; }),
              HasSubstr("--bn sync"));
  try {
    (void)resolve(options, {.train_samples = 1000, .cores = 4, .processes = 2});
    FAIL() << "two processes";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("--emulate-compute with 2 processes"));
  }
}

TEST(Resolve, TimesWorkersThatExchangeNothing) {
  Options options{.workers = 2, .local_batch = 8};
  options.no_exchange = true;
  EXPECT_THAT(refusal(options), HasSubstr("--control no-exchange times steps and trains nothing"));
  options.window_steps = 5;
  EXPECT_EQ(refusal(options), "accepted");
  options.device = "cuda";
  EXPECT_THAT(refusal(options), HasSubstr("--control no-exchange is for workers whose gradients"));
}

TEST(Resolve, RefusesMomentumCorrectionBesideARateThatNoScheduleKnows) {
  Options options;
  options.validation_split = 0.2;
  options.rule.kind = engine::UpdateKind::lars;
  options.momentum_correction = true;
  EXPECT_EQ(refusal(options), "accepted");
  options.schedule.kind = ScheduleKind::plateau;
  EXPECT_THAT(refusal(options), HasSubstr("cannot follow --schedule plateau"));
}

TEST(Resolve, MakesUpForUnevenClassesOnce) {
  Options options{.global_batch = 16, .steps = 1, .class_weights = "balanced", .balanced_sampler = true};
  EXPECT_THAT(refusal(options), HasSubstr("--sampler balanced with --class-weights balanced"));
  const Options windows{.global_batch = 16, .steps = 1, .balanced_sampler = true, .shuffle_window = 8};
  EXPECT_THAT(refusal(windows), HasSubstr("and --shuffle window:8 reads 8 at a time"));
  options.class_weights = "costs.csv";
  EXPECT_EQ(refusal(options), "accepted") << "what an error costs is another matter";
}

TEST(Resolve, CountsStepsAndTheDroppedTail) {
  const auto run = resolve({.global_batch = 300, .epochs = 2}, kMachine);
  EXPECT_EQ(run.steps_per_epoch, 3);
  EXPECT_EQ(run.dropped_per_epoch, 100);
  EXPECT_EQ(run.length.updates, 6);
}

TEST(Resolve, SharesTheCoresOutAndMarksMoreThreadsThanCores) {
  EXPECT_EQ(resolve({.workers = 2}, kMachine).threads, 2);
  EXPECT_FALSE(resolve({.workers = 4}, kMachine).oversubscribed);
  const auto many = resolve({.workers = 5, .local_batch = 8}, kMachine);
  EXPECT_EQ(many.threads, 1);
  EXPECT_TRUE(many.oversubscribed);
}

TEST(Resolve, TimesWholeEpochsOrSteps) {
  EXPECT_EQ(resolve({.local_batch = 100, .window_steps = Options::kWholeEpoch, .warmup_steps = 2}, kMachine)
                .length.updates,
            12);
  EXPECT_EQ(resolve({.local_batch = 100, .window_steps = 5, .warmup_steps = 2}, kMachine).length.updates, 7);
}

TEST(Resolve, TakesThePrecisionThatIsAskedElseTheDevices) {
  constexpr auto kF32 = engine::Precision::f32, kBf16 = engine::Precision::bf16;
  for (const auto of_device : {kF32, kBf16}) {
    const RunConditions machine{.train_samples = 1000, .cores = 1, .auto_precision = of_device};
    EXPECT_EQ(resolve({.precision = "auto"}, machine).precision, of_device);
    EXPECT_EQ(resolve({.precision = "fp32"}, machine).precision, kF32);
    EXPECT_EQ(resolve({.precision = "bf16"}, machine).precision, kBf16);
  }
  EXPECT_EQ(resolve({.precision = "auto"}, kMachine).precision, kF32)
      << "where nothing is said of the device";
}

TEST(Resolve, WalksShardsOneAfterTheOtherOnAllThreadsOfTheWorker) {
  const auto run = resolve({.workers = 2, .global_batch = 64, .shard = 8}, kMachine);
  EXPECT_EQ(run.passes_per_worker, 4);
  EXPECT_EQ(run.engine_batch, 8);
  EXPECT_EQ(run.threads, 2);
}

TEST(Resolve, CutsALocalBatchIntoMicroBatches) {
  const auto run = resolve({.workers = 2, .global_batch = 96, .micro_batch = 16}, kMachine);
  EXPECT_EQ(run.passes_per_worker, 3);
  EXPECT_EQ(run.engine_batch, 16);
  EXPECT_EQ(run.local_batch, 48);
}

TEST(Resolve, LeavesShardsWithSharedStatisticsToTheEngine) {
  const auto run = resolve(
      {.workers = 2, .global_batch = 64, .shard = 8, .batch_norm = engine::BatchNormMode::synchronised},
      kMachine);
  EXPECT_EQ(run.passes_per_worker, 1);
  EXPECT_EQ(run.engine_batch, 32);
  EXPECT_EQ(run.engine_shard, 8);
}

TEST(Resolve, TakesUpToEightThreadsACore) {
  EXPECT_EQ(resolve({.workers = 8, .threads = 4, .local_batch = 8}, kMachine).threads, 4);
  const RunConditions two{.train_samples = 1000, .cores = 2};
  EXPECT_TRUE(resolve({.workers = 8, .threads = 1, .local_batch = 8}, two).oversubscribed);
}

struct Refused {
  const char* what;
  Options options;
  const char* sentence;
};

class Refusal : public testing::TestWithParam<Refused> {};

TEST_P(Refusal, SaysRuleAndActualValue) {
  EXPECT_THAT(refusal(GetParam().options), HasSubstr(GetParam().sentence));
}

INSTANTIATE_TEST_SUITE_P(
    Options, Refusal,
    testing::Values(
        Refused{"both", {.local_batch = 8, .global_batch = 8}, "are both given"},
        Refused{"negative", {.local_batch = -1}, "must be at least 1, is -1"},
        Refused{"division", {.workers = 3, .global_batch = 128}, "the nearest that do are 126 and 129"},
        Refused{"lessThanOneEach", {.workers = 3, .global_batch = 2}, "the smallest that does is 3"},
        Refused{"moreWorkersThanSamples", {.workers = 2000, .local_batch = 1}, "use at most 1000 workers"},
        Refused{"data", {.workers = 2, .local_batch = 501}, "exceeds the data set of 1000 training samples"},
        Refused{"workers", {.workers = 0}, "--workers must be at least 1, is 0"},
        Refused{"crowd",
                {.workers = 3, .threads = 11, .local_batch = 8},
                "--workers 3 x --threads 11 is 33 threads on 4 cores, but more than 8 per core"},
        Refused{"shard", {.global_batch = 64, .shard = 24}, "--shard 24 does not divide the local batch 64"},
        Refused{"microBatch",
                {.workers = 2, .global_batch = 96, .micro_batch = 20},
                "--micro-batch 20 does not divide the local batch 48; 16 does"},
        Refused{"microBatchOfShards",
                {.global_batch = 64, .micro_batch = 16, .shard = 8},
                "a worker already computes its shards one after the other"},
        Refused{"microBatchOfAll",
                {.global_batch = 64, .micro_batch = 16, .batch_norm = engine::BatchNormMode::synchronised},
                "never in memory at once"},
        Refused{"ghostOfMicroBatch",
                {.local_batch = 64,
                 .micro_batch = 16,
                 .batch_norm = engine::BatchNormMode::ghost,
                 .ghost_size = 24},
                "ghost:24 does not divide the micro-batch of 16"},
        Refused{"tree", {.workers = 2, .global_batch = 96, .shard = 8}, "power of two"},
        Refused{"bf16sums",
                {.global_batch = 64, .shard = 8, .gradients_as_bf16 = true},
                "depend on the number of processes"},
        Refused{"ghost",
                {.local_batch = 64, .batch_norm = engine::BatchNormMode::ghost, .ghost_size = 24},
                "ghost:24 does not divide"},
        Refused{"length", {.local_batch = 8, .epochs = 1, .steps = 5}, "are both given"},
        Refused{"lr", {.local_batch = 8, .lr = -0.1}, "--lr must be a number of at least 0, is -0.1"}),
    [](const auto& info) { return std::string(info.param.what); });

}  // namespace

namespace {

constexpr Length kLength{.updates = 40, .updates_per_epoch = 10};

Options lars(bool corrected) {
  Options options;
  options.rule = {.kind = engine::UpdateKind::lars, .momentum = 0.9, .weight_decay = 0};
  options.schedule = {.kind = ScheduleKind::step, .warmup_epochs = 1, .step_epochs = 2, .step_factor = 0.1};
  options.momentum_correction = corrected;
  return options;
}

TEST(MomentumCorrection, FollowsTheRatioOfTheRates) {
  const auto momentum = [](const Options& options, std::int64_t update) {
    return rule_of_update(options, 2, update, kLength).momentum;
  };
  EXPECT_DOUBLE_EQ(momentum(lars(true), 0), 0.9);         // nothing before
  EXPECT_DOUBLE_EQ(momentum(lars(true), 1), 0.9 * 2);     // warm-up: twice the first rate
  EXPECT_DOUBLE_EQ(momentum(lars(true), 15), 0.9);        // no change
  EXPECT_DOUBLE_EQ(momentum(lars(true), 20), 0.9 * 0.1);  // the step
  EXPECT_DOUBLE_EQ(momentum(lars(false), 20), 0.9);
  Options sgd = lars(true);
  sgd.rule.kind = engine::UpdateKind::sgd;
  EXPECT_DOUBLE_EQ(momentum(sgd, 20), 0.9);
}

/// Trains one bias of a dense layer by `options` on the gradients 1, 2, 3, ...
std::vector<double> trained(const Options& options, double peak) {
  graph::Builder model("one");
  model.loss(model.dense(model.input({1, 1, 1}), "fc", {.features = 2}), 0);
  const graph::Graph graph = model.finish();
  const auto layout = graph::flat_layout(graph);
  const auto size = static_cast<std::size_t>(layout.elements);
  std::vector<double> weights(size, 0.5), velocity(size, 0), gradients(size, 0), seen;
  const std::span<double> state(velocity);
  for (std::int64_t update = 0; update < kLength.updates; ++update) {
    for (std::size_t i = 0; i < size; ++i) gradients[i] = std::sin(static_cast<double>(update) + 1);
    const auto rule = rule_of_update(options, peak, update, kLength);
    engine::reference::apply_update<double>(graph, layout, rule,
                                            learning_rate(options.schedule, peak, update, kLength),
                                            update + 1, weights, gradients, {state});
    // A bias: LARS has no factor of its own there, so that its formula is the plain v = m v + lr g.
    for (const auto& slot : layout.slots)
      if (graph.parameters[static_cast<std::size_t>(slot.parameter)].role == graph::Role::bias)
        seen.push_back(weights[static_cast<std::size_t>(slot.offset)]);
  }
  return seen;
}

// Goyal et al.'s remark 2: their form (10) with the correction is their form (9), in which SGD is written
// here.
TEST(MomentumCorrection, MakesBothFormsOfMomentumOne) {
  Options sgd = lars(false);
  sgd.rule.kind = engine::UpdateKind::sgd;
  const auto exact = trained(sgd, 0.2), corrected = trained(lars(true), 0.2),
             plain = trained(lars(false), 0.2);
  ASSERT_EQ(exact.size(), 40u);
  double apart = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    EXPECT_NEAR(corrected[i], exact[i], 1e-12) << i;
    apart = std::max(apart, std::abs(plain[i] - exact[i]));
  }
  EXPECT_GT(apart, 1e-3);  // without it they part
}

}  // namespace
}  // namespace paceline::train
