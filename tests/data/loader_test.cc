#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <optional>
#include <thread>
#include <tuple>
#include <vector>

#include "allocations.h"
#include "base/error.h"
#include "data/loader.h"
#include "fakes.h"

namespace paceline::data {
namespace {

using testing::Each;

/// All that a loader yields in `steps` steps, batch after batch.
struct Yield {
  std::vector<float> images;
  std::vector<std::int32_t> labels;
  std::vector<std::int64_t> places;  ///< epoch, step, first_position of each batch
  bool operator==(const Yield&) const = default;
};

void append(Yield& all, const Batch& batch) {
  all.images.insert(all.images.end(), batch.images.begin(), batch.images.end());
  all.labels.insert(all.labels.end(), batch.labels.begin(), batch.labels.end());
  all.places.insert(all.places.end(), {batch.epoch, batch.step, batch.first_position});
}

Yield run(const NumberedDataset& dataset, const LoaderOptions& options, int steps, std::uint64_t seed = 5) {
  Loader loader(dataset, Sampler(dataset.size(), seed), full_augment(dataset.format(), seed), options);
  Yield all;
  for (int i = 0; i < steps; ++i) append(all, loader.next());
  return all;
}

TEST(Loader, GivesTheSameGlobalBatchForAnyNumberOfWorkers) {
  const NumberedDataset dataset(103);
  constexpr std::int64_t kGlobal = 16;
  constexpr int kSteps = 15;  // two epochs of 6 steps, and into the third
  const Yield alone = run(dataset, {.global_batch = kGlobal, .local_batch = kGlobal}, kSteps);
  for (const int workers : {2, 4, 8}) {
    std::vector<std::unique_ptr<Loader>> loaders;
    for (int rank = 0; rank < workers; ++rank)
      loaders.push_back(std::make_unique<Loader>(
          dataset, Sampler(dataset.size(), 5), full_augment(dataset.format(), 5),
          LoaderOptions{
              .global_batch = kGlobal, .local_batch = kGlobal / workers, .first = rank * kGlobal / workers}));
    Yield together;
    for (int step = 0; step < kSteps; ++step)
      for (auto& loader : loaders) append(together, loader->next());
    EXPECT_EQ(together.labels, alone.labels) << workers;
    EXPECT_EQ(together.images, alone.images) << workers;
  }
}

// For an engine that has the images: what the draws show of them is what the loader prepares otherwise.
TEST(Loader, GivesDrawsThatShowTheImagesThatItWouldPrepare) {
  const NumberedDataset dataset(103);
  std::vector<std::int32_t> labels;
  for (std::int32_t i = 0; i < 103; ++i) labels.push_back(i);
  LoaderOptions options{.global_batch = 16, .local_batch = 8, .first = 8, .start_epoch = 1, .start_step = 4};
  constexpr int kSteps = 15;
  const Yield want = run(dataset, options, kSteps);
  dataset.reads = 0;
  options.draws = true;
  options.labels = labels;
  Loader loader(dataset, Sampler(dataset.size(), 5), full_augment(dataset.format(), 5), options);
  const Augment augment = full_augment(dataset.format(), 5);
  const auto values = static_cast<std::size_t>(dataset.format().bytes());
  std::vector<std::uint8_t> pixels(values);
  Yield got;
  for (int step = 0; step < kSteps; ++step) {
    const Batch& batch = loader.next();
    EXPECT_TRUE(batch.images.empty());
    ASSERT_EQ(batch.draws.size(), 8u);
    append(got, batch);
    EXPECT_EQ(dataset.reads, 0) << "the loader itself reads none";
    for (const auto& draw : batch.draws) {
      dataset.read(draw.index, pixels);
      got.images.resize(got.images.size() + values);
      augment.show(pixels, draw, std::span(got.images).last(values));
    }
    dataset.reads = 0;
  }
  EXPECT_EQ(got, want);
  const auto statistics = loader.statistics();
  EXPECT_EQ(statistics.batches, kSteps);
  EXPECT_EQ(statistics.waits, kSteps) << "who asks draws, and waits for himself";
  EXPECT_EQ(statistics.wait_s, statistics.prepare_s);
  EXPECT_GT(statistics.prepare_s, 0);
  EXPECT_EQ(Loader::planned_bytes(dataset.format(), options), 8 * 20) << "20 bytes a sample";
}

TEST(Loader, GivesTheSameBitsForAnyThreadsAndDepth) {
  const NumberedDataset dataset(500);
  const Yield one = run(dataset, {.global_batch = 64, .local_batch = 64}, 20);
  for (const int threads : {1, 2, 3, 8})
    for (const int prefetch : {1, 2, 5})
      EXPECT_EQ(
          run(dataset, {.global_batch = 64, .local_batch = 64, .threads = threads, .prefetch = prefetch}, 20),
          one)
          << threads << " threads, prefetch " << prefetch;
}

TEST(Loader, YieldsEachSampleOnceAnEpochAndDropsTheTail) {
  for (const std::int64_t size : {10, 11, 19, 100}) {
    const NumberedDataset dataset(size);
    constexpr std::int64_t kBatch = 10;
    Loader loader(dataset, Sampler(size, 1), full_augment(dataset.format()),
                  {.global_batch = kBatch, .local_batch = kBatch});
    EXPECT_EQ(loader.steps_per_epoch(), size / kBatch);
    EXPECT_EQ(loader.dropped_per_epoch(), size % kBatch);
    for (int epoch = 0; epoch < 3; ++epoch) {
      std::vector<int> seen(static_cast<std::size_t>(size));
      for (std::int64_t step = 0; step < loader.steps_per_epoch(); ++step) {
        const Batch& batch = loader.next();
        EXPECT_EQ(batch.epoch, epoch);
        EXPECT_EQ(batch.step, step);
        EXPECT_EQ(batch.first_position, step * kBatch);
        for (const auto label : batch.labels) ++seen[static_cast<std::size_t>(label)];
      }
      std::int64_t missing = 0;
      for (const int count : seen) {
        EXPECT_LE(count, 1);
        missing += count == 0;
      }
      EXPECT_EQ(missing, size % kBatch) << size;
    }
  }
}

TEST(Loader, DropsOtherSamplesInTheNextEpoch) {
  const NumberedDataset dataset(64 + 32);
  Loader loader(dataset, Sampler(dataset.size(), 1), full_augment(dataset.format()),
                {.global_batch = 64, .local_batch = 64});
  std::vector<int> seen(96);
  for (int epoch = 0; epoch < 30; ++epoch)
    for (const auto label : loader.next().labels) ++seen[static_cast<std::size_t>(label)];
  EXPECT_THAT(seen, Each(testing::Gt(0)));  // one sample missed 30 times: (1/3)^30
}

TEST(Loader, ResumesWhereItIsTold) {
  const NumberedDataset dataset(70);
  LoaderOptions options{.global_batch = 16, .local_batch = 8, .first = 8};
  const Yield whole = run(dataset, options, 12);  // 4 steps an epoch
  for (const int skipped : {1, 3, 4, 5, 9}) {
    for (const bool at_end : {false, true}) {
      if (at_end && skipped % 4 != 0) continue;
      options.start_epoch = skipped / 4 - (at_end ? 1 : 0);
      options.start_step = at_end ? 4 : skipped % 4;  // the end of an epoch is the start of the next
      const Yield rest = run(dataset, options, 12 - skipped);
      const auto from = [&](const auto& all, std::size_t per_step) {
        return std::vector(all.begin() + static_cast<std::ptrdiff_t>(per_step) * skipped, all.end());
      };
      EXPECT_EQ(rest.labels, from(whole.labels, 8)) << skipped;
      EXPECT_EQ(rest.images, from(whole.images, 8 * 60)) << skipped;
      EXPECT_EQ(rest.places, from(whole.places, 3)) << skipped;
    }
  }
}

TEST(Loader, ThrowsWhatReadingThrew) {
  NumberedDataset dataset(40);
  dataset.on_read = [](std::int64_t index) {
    if (index == 17) base::fail(base::ErrorKind::data, "sample 17 is unreadable");
  };
  Loader loader(dataset, Sampler(40, 0, Order::as_stored), full_augment(dataset.format()),
                {.global_batch = 10, .local_batch = 10, .threads = 2});
  EXPECT_EQ(loader.next().labels[0], 0);
  EXPECT_THROW((void)loader.next(), base::Error);
}

TEST(Loader, CountsWaitsAndBatches) {
  NumberedDataset dataset(40);
  std::atomic<Loader*> shared = nullptr;
  std::atomic<bool> first =
      true;  // of the first epoch: the next one reads it ahead, when nobody waits any more
  dataset.on_read = [&](std::int64_t index) {
    if (index == 0 && first.exchange(false))
      while (shared.load() == nullptr || !shared.load()->is_waiting()) std::this_thread::yield();
  };
  Loader loader(dataset, Sampler(40, 0, Order::as_stored), full_augment(dataset.format()),
                {.global_batch = 20, .local_batch = 20});
  shared = &loader;
  (void)loader.next();
  EXPECT_EQ(loader.statistics().waits, 1);
  EXPECT_GT(loader.statistics().wait_s, 0);
  EXPECT_EQ(loader.statistics().batches, 1);
}

TEST(Loader, PreparesOnlyItsOwnPart) {
  const NumberedDataset dataset(80);
  Loader loader(dataset, Sampler(80, 0), full_augment(dataset.format()),
                {.global_batch = 40, .local_batch = 10, .first = 30, .prefetch = 3});
  loader.wait_until_prepared();
  EXPECT_EQ(dataset.reads, 40);
}

TEST(Loader, AllocatesNothingAfterItsConstruction) {
  const NumberedDataset dataset(1000);
  Loader loader(dataset, Sampler(1000, 0), full_augment(dataset.format()),
                {.global_batch = 32, .local_batch = 32, .threads = 2});
  loader.wait_until_prepared();
  const auto before = allocations_so_far();
  for (int i = 0; i < 100; ++i) (void)loader.next();
  loader.wait_until_prepared();
  EXPECT_EQ(allocations_so_far(), before);
}

}  // namespace

namespace {

using testing::Each;

std::vector<std::int64_t> order(const Sampler& sampler, std::int64_t epoch) {
  std::vector<std::int64_t> indices;
  for (std::int64_t p = 0; p < sampler.size(); ++p) indices.push_back(sampler.index(epoch, p));
  return indices;
}

int equal_positions(const std::vector<std::int64_t>& a, const std::vector<std::int64_t>& b) {
  int equal = 0;
  for (std::size_t i = 0; i < a.size(); ++i) equal += a[i] == b[i];
  return equal;
}

class SamplerTable : public testing::TestWithParam<std::tuple<std::int64_t, std::int64_t, std::uint64_t>> {};

TEST_P(SamplerTable, CoversEveryIndexOnce) {
  const auto [size, epoch, seed] = GetParam();
  std::vector<int> seen(static_cast<std::size_t>(size));
  for (const auto index : order(Sampler(size, seed), epoch)) {
    ASSERT_GE(index, 0);
    ASSERT_LT(index, size);
    ++seen[static_cast<std::size_t>(index)];
  }
  EXPECT_THAT(seen, Each(1));
}

INSTANTIATE_TEST_SUITE_P(
    SizesEpochsSeeds, SamplerTable,
    testing::Combine(testing::Values(0, 1, 2, 3, 4, 5, 7, 16, 17, 64, 65, 1000, 1024, 4099, 50000),
                     testing::Values(0, 1, 2, 5'000'000'000), testing::Values(0u, 1u, 0xffffffffffffffffu)));

TEST(Sampler, IsTheIdentityWithoutShuffle) {
  const Sampler sampler(1000, 7, Order::as_stored);
  for (std::int64_t p = 0; p < 1000; ++p) EXPECT_EQ(sampler.index(3, p), p);
}

// Two unrelated permutations agree in one position on average (Poisson): more than ten is a chance of 1e-8.
TEST(Sampler, OrdersEveryEpochAnew) {
  const Sampler sampler(50000, 0);
  for (int epoch = 0; epoch < 4; ++epoch)
    for (int other = 0; other < epoch; ++other)
      EXPECT_LE(equal_positions(order(sampler, epoch), order(sampler, other)), 10) << epoch << " " << other;
}

// As PyTorch's DistributedSampler does if nobody calls set_epoch.
TEST(Sampler, ShuffledOnceRepeatsTheFirstEpoch) {
  const Sampler once(1000, 7, Order::shuffled_once), anew(1000, 7);
  EXPECT_EQ(order(once, 0), order(anew, 0));
  EXPECT_EQ(order(once, 3), order(anew, 0));
}

// With seed + epoch as the seed of an epoch, the run with seed 1 begins with what the run with seed 0 does
// second.
TEST(Sampler, DoesNotRepeatAnotherSeedsEpochs) {
  const Sampler first(50000, 0), second(50000, 1);
  EXPECT_LE(equal_positions(order(first, 1), order(second, 0)), 10);
  EXPECT_LE(equal_positions(order(first, 2), order(second, 1)), 10);
  EXPECT_LE(equal_positions(order(first, 0), order(second, 0)), 10);
}

// Chi-square with size - 1 degrees of freedom; the bound is 5 standard deviations over its mean.
TEST(Sampler, PutsASampleAnywhereWithEqualChance) {
  for (const std::int64_t size : {3, 5, 10, 37}) {
    const Sampler sampler(size, 11);
    for (const std::int64_t position : {std::int64_t{0}, size / 2, size - 1}) {
      std::vector<int> counts(static_cast<std::size_t>(size));
      constexpr int kEpochs = 20000;
      for (int epoch = 0; epoch < kEpochs; ++epoch)
        ++counts[static_cast<std::size_t>(sampler.index(epoch, position))];
      const double expected = static_cast<double>(kEpochs) / static_cast<double>(size);
      double chi_square = 0;
      for (const int count : counts) chi_square += (count - expected) * (count - expected) / expected;
      const double freedom = static_cast<double>(size - 1);
      EXPECT_LT(chi_square, freedom + 5 * std::sqrt(2 * freedom)) << size << " " << position;
    }
  }
}

// Neighbours in the file must not stay neighbours in the epoch: a file sorted by class would give batches of
// one.
TEST(Sampler, SeparatesNeighbours) {
  const auto indices = order(Sampler(50000, 3), 0);
  int near = 0;
  for (std::size_t i = 1; i < indices.size(); ++i) near += std::abs(indices[i] - indices[i - 1]) <= 50;
  EXPECT_LT(near, 200);  // 100 expected, standard deviation 10
}

}  // namespace
}  // namespace paceline::data
