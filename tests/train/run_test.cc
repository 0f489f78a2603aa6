#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "base/error.h"
#include "fixture.h"

namespace paceline::train {
namespace {

using testing::HasSubstr;

class Run : public TrainingTest {
 protected:
  /// The bytes of the last checkpoint that a training of `options` leaves.
  std::string checkpoint_of(Options options, const std::string& out) {
    options.out = directory_ / out;
    (void)train(options);
    return base::read_file(options.out / "checkpoint-00000010.safetensors");
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
    EXPECT_EQ(checkpoint_of(options, "a"), checkpoint_of(options, "b")) << workers << " workers";
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
    EXPECT_THAT(error.what(), HasSubstr("learning rate 1e+30"));
    EXPECT_THAT(error.what(), HasSubstr("checkpoint"));
  }
  EXPECT_EQ(measure::read_record(options.out / "record.json").status, "failed");
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
