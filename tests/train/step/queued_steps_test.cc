/// Trainings whose steps go into a device's queue, beside the same ones whose steps are waited for.

#include "train/step/queued_steps.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <map>

#include "engine/cuda/kernels/step_report.h"
#include "train/checkpoint/checkpoint.h"
#include "train/fixture.h"
#include "train/forwarding_engine.h"

namespace paceline::train {
namespace {

using testing::Contains;
using testing::HasSubstr;
using Unit = CheckpointInterval::Unit;

class QueuedSteps : public TrainingTest {
 protected:
  [[nodiscard]] Options on_device(const std::string& out) const {
    Options options = small(out);
    options.device = "cuda-on-host";
    options.keep_checkpoints = 100;
    return options;
  }

  struct WithoutQueue final : ForwardingEngine {
    using ForwardingEngine::ForwardingEngine;
    engine::StepQueue* step_queue() override { return nullptr; }
  };
  /// A backend that hides the queues of its engines.
  static Backend waiting(const std::string& device) {
    auto backend = backend_of(device);
    backend.made_up->on_compile = [device](const graph::Graph& graph, const engine::CompileOptions& options) {
      return std::make_unique<WithoutQueue>(engine::compile(device, graph, options));
    };
    return backend;
  }

  struct Outcome {
    std::string status, error;
    std::vector<double> losses;                      ///< by step
    std::vector<std::pair<double, double>> figures;  ///< loss and accuracy of each epoch
    std::vector<std::int64_t> rollbacks;             ///< found at, gone back to, in turns
    std::map<std::string, std::string> checkpoints;  ///< bytes by name
    measure::Record record;
  };
  Outcome outcome(const Options& options, const Backend& backend, std::stop_token stop = {},
                  const Progress& progress = {}) {
    Outcome found;
    try {
      found.record = run(options, backend, stop, progress);
    } catch (const base::Error& error) {
      found.error = error.what();
    }
    found.status = found.record.status;
    for (const auto& step : found.record.steps) found.losses.push_back(step.loss);
    for (const auto& epoch : found.record.epochs)
      found.figures.emplace_back(epoch.train_loss, epoch.train_accuracy);
    for (const auto& rollback : found.record.rollbacks.value_or(std::vector<measure::RollbackRecord>{})) {
      found.rollbacks.push_back(rollback.update);
      found.rollbacks.push_back(rollback.to_update);
    }
    if (std::filesystem::exists(options.out))
      for (const auto& file : std::filesystem::directory_iterator(options.out))
        if (file.path().extension() == ".safetensors" && !file.is_symlink())
          found.checkpoints[file.path().filename()] = base::read_file(file.path());
    return found;
  }

  /// Runs `options` in both ways, and expects the same of them.
  Outcome expect_same(Options options, const std::string& name) {
    SCOPED_TRACE(name);
    options.out = directory_ / (name + "-waiting");
    const auto want = outcome(options, waiting(options.device));
    options.out = directory_ / (name + "-queued");
    auto got = outcome(options, backend_of(options.device));
    EXPECT_EQ(got.status, want.status);
    EXPECT_EQ(without_folder(got.error), without_folder(want.error));
    EXPECT_EQ(got.losses, want.losses);
    EXPECT_EQ(got.figures, want.figures);
    EXPECT_EQ(got.rollbacks, want.rollbacks);
    // Inside an epoch the disk decides which are written.
    if (options.checkpoint_every.unit == Unit::epochs) {
      EXPECT_EQ(names(got), names(want));
    }
    for (const auto& [file, bytes] : want.checkpoints)
      if (const auto found = got.checkpoints.find(file); found != got.checkpoints.end()) {
        EXPECT_TRUE(found->second == bytes) << file;
      }
    return got;
  }

  static std::vector<std::string> names(const Outcome& of) {
    std::vector<std::string> all;
    for (const auto& [name, bytes] : of.checkpoints) all.push_back(name);
    return all;
  }
  static std::string without_folder(std::string text) {
    for (const std::string folder : {"-waiting", "-queued"})
      if (const auto at = text.find(folder); at != std::string::npos) text.erase(at, folder.size());
    return text;
  }
};

TEST(VotesOfQueuedSteps, AreOfTheLastBucketOrApartWhereGradientsAreRounded) {
  const Buckets buckets{.ends = {100, 160}};
  EXPECT_EQ(with_votes(buckets, false).ends, (std::vector<std::int64_t>{100, 168}));
  EXPECT_EQ(with_votes(buckets, true).ends, (std::vector<std::int64_t>{100, 160, 168}));
  EXPECT_EQ(with_votes({}, true).ends, (std::vector<std::int64_t>{8}));
}

TEST_F(QueuedSteps, GiveTheFiguresAndCheckpointsOfStepsThatAreWaitedFor) {
  auto options = on_device("");
  options.steps = 20;
  for (const int workers : {1, 2}) {
    options.workers = workers;
    const auto got = expect_same(options, fmt::format("plain-{}", workers));
    EXPECT_EQ(got.losses.size(), 20U);
  }
}

TEST_F(QueuedSteps, KeepEachCheckpointInsideAnEpoch) {
  auto options = on_device("");
  options.checkpoint_every = {Unit::steps, 3};
  for (const int workers : {1, 2}) {
    options.workers = workers;
    const auto got = expect_same(options, fmt::format("every-3-{}", workers));
    EXPECT_THAT(names(got), Contains("checkpoint-00000003.safetensors"));
  }
}

TEST_F(QueuedSteps, WithShardsAndLookaheadGiveTheSame) {
  auto options = on_device("");
  options.shard = 4;
  options.lookahead = {.steps = 3, .keep = 0.7, .power = 1};
  std::string first;
  for (const int workers : {1, 2}) {
    options.workers = workers;
    const auto got = expect_same(options, fmt::format("shards-{}", workers));
    const auto& bytes = got.checkpoints.at("checkpoint-00000010.safetensors");
    if (first.empty()) first = bytes;
    EXPECT_TRUE(bytes == first) << workers << " workers";
  }
}

TEST_F(QueuedSteps, StoppedAfterAnyStepAndResumedGiveTheBitsOfTheUninterruptedRun) {
  for (const int workers : {1, 2}) {
    auto options = on_device(fmt::format("whole-{}", workers));
    options.workers = workers;
    const auto whole = outcome(options, backend_of(options.device));
    const auto& want = whole.checkpoints.at("checkpoint-00000010.safetensors");
    for (std::int64_t at = 1; at < 10; ++at) {
      SCOPED_TRACE(fmt::format("{} workers, stopped in the report of step {}", workers, at));
      options.out = directory_ / fmt::format("parts-{}-{}", workers, at);
      options.resume.clear();
      std::stop_source stop;
      Progress progress;
      progress.step = [&](std::int64_t step, std::int64_t, double, double) {
        if (step == at) stop.request_stop();
      };
      const auto part = outcome(options, backend_of(options.device), stop.get_token(), progress);
      if (part.status != "interrupted") {
        EXPECT_GE(at, 7) << "the last steps were on their way already";
        EXPECT_TRUE(part.checkpoints.at("checkpoint-00000010.safetensors") == want);
        continue;
      }
      options.resume = options.out;
      const auto rest = outcome(options, backend_of(options.device));
      EXPECT_TRUE(rest.checkpoints.at("checkpoint-00000010.safetensors") == want);
    }
  }
}

/// Goes on from every checkpoint that a run leaves, as one does that was killed after it.
TEST_F(QueuedSteps, GoOnFromEachCheckpointToTheSameEnd) {
  auto options = on_device("whole");
  options.checkpoint_every = {Unit::steps, 1};
  options.on_nan = OnNan::rollback;  // its checkpoints say more
  const auto whole = outcome(options, backend_of(options.device));
  ASSERT_GE(whole.checkpoints.size(), 4U);
  for (const auto& [name, bytes] : whole.checkpoints) {
    if (name == "checkpoint-00000010.safetensors") continue;
    auto rest = options;
    rest.out = directory_ / ("from-" + name);
    rest.resume = options.out / name;
    EXPECT_TRUE(outcome(rest, backend_of(rest.device)).checkpoints.at("checkpoint-00000010.safetensors") ==
                whole.checkpoints.at("checkpoint-00000010.safetensors"))
        << name;
  }
}

TEST_F(QueuedSteps, ThatDivergeEndAsThoseThatAreWaitedFor) {
  for (const auto& [rule, lr] :
       {std::pair{OnNan::stop, 3000.0}, {OnNan::rollback, 60.0}, {OnNan::skip, 20.0}})
    for (const int workers : {1, 2}) {
      auto options = on_device("");
      options.steps = 30;
      options.lr = lr;
      options.workers = workers;
      options.on_nan = rule;
      options.checkpoint_every = {Unit::epochs, 1};
      const auto got = expect_same(options, fmt::format("diverging-{}-{}", static_cast<int>(rule), workers));
      EXPECT_FALSE(rule == OnNan::stop && got.error.empty());
      EXPECT_EQ(got.rollbacks.empty(), rule != OnNan::rollback);
    }
}

/// A data set with one image that is not finite would be refused: a weight does it, at a rate that throws it
/// off after some steps. What matters is that several bad steps are on their way when the first is found.
TEST_F(QueuedSteps, RolledBackTellNothingOfStepsBehindTheBadOne) {
  auto options = on_device("o");
  options.steps = 30;
  options.lr = 3000;
  options.on_nan = OnNan::rollback;
  options.checkpoint_every = {Unit::epochs, 1};
  std::vector<std::int64_t> told;
  Progress progress;
  progress.step = [&](std::int64_t step, std::int64_t, double loss, double) {
    EXPECT_TRUE(std::isfinite(loss)) << step;
    told.push_back(step);
  };
  const auto found = outcome(options, backend_of(options.device), {}, progress);
  for (std::size_t i = 1; i < told.size(); ++i) EXPECT_LE(told[i], told[i - 1] + 1);
}

TEST_F(QueuedSteps, OfAWindowCloseTheLedgerAndFillItsPhases) {
  for (const int workers : {1, 2}) {
    auto options = on_device("");
    options.workers = workers;
    options.steps = 0;
    options.warmup_steps = 2;
    options.window_steps = 9;
    const auto record = train(options);
    EXPECT_EQ(record.window.steps, 9);
    for (const auto& rank : record.ranks) {
      ASSERT_EQ(rank.step_s.size(), 9U);
      double sum = 0, steps = 0;
      for (const double seconds : rank.phases) sum += seconds;
      for (const double seconds : rank.step_s) steps += seconds;
      EXPECT_NEAR(sum, rank.wall_s, 0.01 * rank.wall_s) << "the ledger closes";
      EXPECT_LE(steps, rank.wall_s * 1.01);
      for (const auto phase : {measure::Phase::forward, measure::Phase::backward, measure::Phase::update})
        EXPECT_GT(rank.phases[static_cast<std::size_t>(phase)], 0) << measure::name(phase);
      const double transfer = rank.phases[static_cast<std::size_t>(measure::Phase::exposed_transfer)] +
                              rank.phases[static_cast<std::size_t>(measure::Phase::exposed_wait)];
      EXPECT_EQ(transfer > 0, workers > 1);
    }
    std::int64_t held = 0;
    for (const auto& bucket : record.buckets) held += bucket.bytes;
    EXPECT_EQ(record.communication.vote_bytes, 32);
    EXPECT_EQ(held, record.communication.gradient_bytes + 32);
    if (workers == 1) continue;
    for (const auto& bucket : record.buckets) {
      EXPECT_EQ(bucket.duration_s.size(), 9U);
      EXPECT_EQ(bucket.ready_s.value().size(), 9U);
    }
  }
}

TEST_F(QueuedSteps, EndAWindowByTimeOnAllRanksTogether) {
  auto options = on_device("");
  options.workers = 2;
  options.steps = 0;
  options.warmup_steps = 1;
  options.window_steps = 1000;
  options.window_seconds = 0.05;
  const auto record = train(options);
  EXPECT_LT(record.window.steps, 1000);
  for (const auto& rank : record.ranks)
    EXPECT_EQ(static_cast<std::int64_t>(rank.step_s.size()), record.window.steps);
}

TEST_F(QueuedSteps, TheirVotesAreThoseOfTheHost) {
  const double values[] = {0,
                           0x1p-24,
                           1,
                           2.5 + 0x1p-24,
                           4095.75,
                           1e6 + 0x1p-20,
                           0x1p35,
                           0x1p36,
                           1e300,
                           std::nan(""),
                           std::numeric_limits<double>::infinity()};
  for (const double loss : values)
    for (const bool stop : {false, true})
      for (const bool enough : {false, true}) {
        const engine::cuda::LossResult result{.loss = loss, .correct = 3};
        const engine::cuda::StepNumbers numbers{.stop = stop ? 1 : 0, .enough = enough ? 1 : 0};
        engine::cuda::StepReport report{};
        std::array<float, kVoteFloats> votes{};
        const engine::cuda::WriteVotes kernel{&result, &numbers, &report, votes.data()};
        kernel.run({});
        EXPECT_EQ(
            votes,
            as_floats({.stop = stop, .not_finite = !std::isfinite(loss), .enough = enough, .loss = loss}))
            << loss;
      }
}

}  // namespace
}  // namespace paceline::train
