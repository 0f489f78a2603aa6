#include "train/step/data_parallel.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "graph/layout.h"
#include "graph/zoo.h"
#include "train/fixture.h"

namespace paceline::train {
namespace {

using testing::HasSubstr;

class DataParallel : public TrainingTest {
 protected:
  [[nodiscard]] Options of(int workers, const std::string& out = "") const {
    Options options = small(out);
    options.workers = workers;
    options.threads = 1;
    options.global_batch = 24;
    options.data_parallel = true;
    return options;
  }
  static std::vector<double> losses(const measure::Record& record) {
    std::vector<double> all;
    for (const auto& step : record.steps) all.push_back(step.loss);
    return all;
  }
};

TEST_F(DataParallel, LearnsWhatAsManyEqualWorkersLearn) {
  for (const int workers : {2, 3}) {
    Options options = of(workers, "parallel" + std::to_string(workers));
    const auto parallel = train(options);
    options.data_parallel = false;
    options.out = directory_ / ("equal" + std::to_string(workers));
    const auto equal = train(options);
    ASSERT_EQ(parallel.steps.size(), 10u);
    EXPECT_EQ(losses(parallel), losses(equal)) << "the sums are formed in the same order";
    EXPECT_EQ(parallel.epochs.back().test_loss, equal.epochs.back().test_loss);
    EXPECT_EQ(base::read_file(directory_ / ("parallel" + std::to_string(workers)) /
                              "checkpoint-00000010.safetensors"),
              base::read_file(options.out / "checkpoint-00000010.safetensors"));
    EXPECT_EQ(parallel.communication.parallel, "data-parallel");
    EXPECT_THAT(parallel.communication.algorithm, HasSubstr("worker 0"));
    EXPECT_EQ(equal.communication.parallel, std::nullopt);
  }
}

TEST_F(DataParallel, CorrectsTheMomentumOfLarsAsEqualWorkersDo) {
  Options options = of(2, "parallel");
  options.rule.kind = engine::UpdateKind::lars;
  options.momentum_correction = true;
  options.schedule.kind = ScheduleKind::cosine;
  const auto parallel = losses(train(options));
  options.data_parallel = false;
  options.out = directory_ / "equal";
  EXPECT_EQ(parallel, losses(train(options)));
  options.momentum_correction = false;
  options.out = directory_ / "uncorrected";
  EXPECT_NE(parallel, losses(train(options)));
}

TEST_F(DataParallel, GoesOnFromACheckpoint) {
  Options options = of(2, "whole");
  (void)train(options);
  const auto whole = base::read_file(options.out / "checkpoint-00000010.safetensors");
  options.out = directory_ / "halves";
  options.steps = 5;
  (void)train(options);
  options.steps = 10;
  options.resume = options.out;
  (void)train(options);
  EXPECT_EQ(base::read_file(options.out / "checkpoint-00000010.safetensors"), whole);
}

/// docs/collectives.md has the same formula.
TEST_F(DataParallel, CountsTheBytesOfItsFormula) {
  for (const int workers : {2, 3}) {
    Options options = of(workers);
    options.window_steps = 7;
    options.warmup_steps = 2;
    const auto record = train(options);
    const auto others = workers - 1;
    const std::int64_t local = 24 / workers;
    const auto source = data::open(options.data);
    const auto format = source.train->format();
    const std::int64_t inputs = local * (4 * format.bytes() + 4);
    const std::int64_t outputs = 4 * (local * source.classes() + 8);
    const std::int64_t gradients = record.communication.gradient_bytes, weights = gradients;
    EXPECT_EQ(record.communication.bytes_sent, 7 * others * (inputs + outputs + weights)) << workers;
    EXPECT_EQ(record.communication.bytes_received, 7 * others * (outputs + gradients)) << workers;
    for (int rank = 1; rank < workers; ++rank) {
      const auto& other = record.ranks[static_cast<std::size_t>(rank)];
      EXPECT_EQ(other.bytes_sent, 7 * (outputs + gradients));
      EXPECT_EQ(other.bytes_received, 7 * (inputs + outputs + weights));
    }
    EXPECT_TRUE(record.buckets.empty());
    for (const auto& rank : record.ranks) {
      double sum = 0;
      for (const double phase : rank.phases) sum += phase;
      EXPECT_NEAR(sum, rank.wall_s, 0.01 * rank.wall_s) << "the ledger closes";
    }
  }
}

TEST_F(DataParallel, WorksOnADeviceThatIsNotTheHost) {
  Options options = of(2);
  options.device = "cuda-on-host";
  const auto parallel = train(options);
  options.data_parallel = false;
  EXPECT_EQ(losses(parallel), losses(train(options)));
}

TEST_F(DataParallel, OfOneWorkerIsAnOrdinaryTraining) {
  Options options = of(1);
  const auto parallel = train(options);
  options.data_parallel = false;
  EXPECT_EQ(losses(parallel), losses(train(options)));
  EXPECT_EQ(parallel.communication.parallel, std::nullopt);
}

TEST_F(DataParallel, EndsEverywhereWhenALossIsNotFinite) {
  Options options = of(2);
  options.lr = 1e30;
  EXPECT_THAT(refusal(options), HasSubstr("no longer finite"));
}

TEST_F(DataParallel, RefusesWhatHasNoCounterpart) {
  Options options = of(2);
  options.batch_norm = engine::BatchNormMode::synchronised;
  EXPECT_THAT(refusal(options), HasSubstr("--bn sync"));
  options = of(2);
  options.shard = 4;
  EXPECT_THAT(refusal(options), HasSubstr("--shard 4"));
}

}  // namespace
}  // namespace paceline::train
