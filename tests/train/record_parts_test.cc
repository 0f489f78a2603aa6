/// What a training's record says beside its times: what travelled, and who else was there.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "train/fixture.h"

namespace paceline::train {
namespace {

class RecordParts : public TrainingTest {};

TEST_F(RecordParts, TheFlatGradientIsItsParts) {
  const auto record = train(small());
  const auto& travels = record.communication;
  ASSERT_TRUE(travels.parameter_bytes && travels.statistics_bytes && travels.padding_bytes);
  EXPECT_EQ(*travels.parameter_bytes, 4 * record.model.parameters);
  EXPECT_GT(*travels.statistics_bytes, 0);
  EXPECT_EQ(*travels.parameter_bytes + *travels.statistics_bytes + *travels.padding_bytes,
            travels.gradient_bytes);
  EXPECT_GT(record.model.bytes_a_sample.value_or(0), 0);
  EXPECT_GT(record.model.bytes_a_step.value_or(0), 0);
}

TEST_F(RecordParts, TheCollectivesOfAStepAreBucketsVotesAndSynchronisedNorms) {
  for (const bool is_synchronised : {false, true}) {
    auto options = small();
    options.workers = 2;
    options.steps = 0;
    options.epochs = 0;
    options.window_steps = 6;
    if (is_synchronised) options.batch_norm = engine::BatchNormMode::synchronised;
    const auto record = train(options);
    const auto& travels = record.communication;
    EXPECT_EQ(travels.norm_collectives.value_or(0) > 0, is_synchronised);
    EXPECT_EQ(travels.norm_bytes.value_or(0) > 0, is_synchronised);
    std::int64_t bytes = 0;
    for (const auto& bucket : record.buckets) bytes += bucket.bytes;
    EXPECT_EQ(bytes, travels.gradient_bytes);
    EXPECT_FALSE(travels.vote_bytes) << "votes have a collective of their own";
    const auto a_step =
        static_cast<std::int64_t>(record.buckets.size()) + 1 + travels.norm_collectives.value_or(0);
    EXPECT_GE(travels.collectives, a_step * record.window.steps);
    EXPECT_LE(travels.collectives, a_step * record.window.steps + 2) << "a few at the window's ends";
  }
}

/// Steps split into own work and standing still as the ledger splits them, and when buckets could leave.
TEST_F(RecordParts, OwnWorkAndReadyTimesAreThoseOfTheLedger) {
  for (const int workers : {1, 2}) {
    auto options = small();
    options.workers = workers;
    options.window_steps = 12;
    options.bucket_mb = 0.001;
    const auto record = train(options);
    for (const auto& rank : record.ranks) {
      ASSERT_TRUE(rank.own_s.has_value());
      ASSERT_EQ(rank.own_s->size(), rank.step_s.size());
      double still = 0;
      for (std::size_t i = 0; i < rank.step_s.size(); ++i) {
        EXPECT_GT((*rank.own_s)[i], 0);
        still += rank.step_s[i] - (*rank.own_s)[i];
      }
      const double exposed = rank.phases[static_cast<std::size_t>(measure::Phase::exposed_transfer)] +
                             rank.phases[static_cast<std::size_t>(measure::Phase::exposed_wait)];
      EXPECT_NEAR(still, exposed, 0.02 * rank.wall_s);
    }
    ASSERT_GT(record.buckets.size(), 1u);
    const double backward = record.ranks[0].phases[static_cast<std::size_t>(measure::Phase::backward)];
    double last = 0, before = 0;
    for (const auto& bucket : record.buckets) {
      ASSERT_TRUE(bucket.ready_s.has_value());
      ASSERT_EQ(bucket.ready_s->size(), 12u);
      EXPECT_EQ(bucket.transfer_s.size(), workers == 1 ? 0u : 12u);
      double sum = 0;
      for (const double ready : *bucket.ready_s) sum += ready;
      EXPECT_GE(sum, before);
      before = last = sum;
    }
    EXPECT_GT(last, 0);
    EXPECT_LE(last, 1.001 * backward);
  }
}

TEST_F(RecordParts, WithoutLoaderThreadsTheSameBitsAreTrained) {
  auto options = small();
  const auto usual = checkpoint_of(options, "one");
  options.loader_threads = 0;
  EXPECT_EQ(checkpoint_of(options, "none"), usual);
  options.workers = 2;
  options.evaluate_every = 1;
  const auto record = train(options);
  EXPECT_EQ(record.status, "complete");
  for (const auto& rank : record.ranks) {
    EXPECT_EQ(rank.loader_threads, 0);
    EXPECT_EQ(rank.loader_queue, 0);
    EXPECT_EQ(rank.loader_waits, static_cast<std::int64_t>(rank.step_s.size()));
    EXPECT_GT(rank.phases[static_cast<std::size_t>(measure::Phase::data_wait)], 0);
  }
  EXPECT_EQ(record.settings.at("loader-threads"), "0");
}

TEST_F(RecordParts, ZeroGammaNeedsAResidualBlock) {
  auto options = small();
  options.model = "resnet8-cifar";
  options.zero_gamma = true;
  options.steps = 1;
  const auto record = train(options);
  EXPECT_EQ(record.settings.at("zero-gamma"), "true");
  options.zero_gamma = false;
  EXPECT_FALSE(train(options).settings.contains("zero-gamma"));  // records of before stay comparable
  options.zero_gamma = true;
  options.model = "mnist-cnn";
  try {
    (void)train(options);
    ADD_FAILURE() << "no error";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("has no residual block"));
  }
}

TEST_F(RecordParts, SynchronisedBatchNormNeedsABatchNorm) {
  auto options = small();
  options.model = "mnist-cnn";
  options.batch_norm = engine::BatchNormMode::synchronised;
  options.steps = 1;
  try {
    (void)train(options);
    ADD_FAILURE() << "no error";
  } catch (const base::Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("'mnist-cnn' has no batch norm"));
  }
}

TEST_F(RecordParts, SaysThatEpochsHadOneOrder) {
  auto options = small();
  options.data = "synthetic,train=100,test=40";  // the last few fill no batch
  options.epochs = 2;
  options.steps = 0;
  const auto anew = train(options);
  options.same_order = true;
  const auto same = train(options);
  EXPECT_EQ(same.settings.at("emulate-same-order"), "yes");
  EXPECT_FALSE(anew.settings.contains("emulate-same-order"));
  const auto says = [](const char* text) { return testing::Contains(testing::HasSubstr(text)); };
  EXPECT_THAT(same.notes, says("every epoch has the order of the first"));
  EXPECT_THAT(same.notes, says("left out of that epoch, the same ones in all"));
  EXPECT_THAT(anew.notes, says("left out of that epoch (each epoch has another order)"));
  EXPECT_EQ(same.epochs[0].train_loss, anew.epochs[0].train_loss) << "the first epoch is the same";
  EXPECT_NE(same.epochs[1].train_loss, anew.epochs[1].train_loss);
}

}  // namespace
}  // namespace paceline::train
