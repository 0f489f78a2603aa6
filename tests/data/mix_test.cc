#include "data/mix.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <numbers>
#include <vector>

#include "data/loader.h"
#include "fakes.h"

namespace paceline::data {
namespace {

constexpr int kDraws = 40'000;

std::vector<double> beta_draws(double a) {
  base::Rng rng(3, base::Purpose::test, static_cast<std::uint64_t>(1000 * a));
  std::vector<double> draws(kDraws);
  std::ranges::generate(draws, [&] { return draw_beta(a, rng); });
  return draws;
}

// The standard error of the mean is 1/2 / sqrt(40000) at most, that of the variance 1/8 of this.
TEST(Mix, FactorsHaveTheMomentsOfBeta) {
  for (const double a : {0.2, 0.4, 1.0, 3.0}) {
    double mean = 0, squares = 0;
    for (const double draw : beta_draws(a)) {
      ASSERT_TRUE(draw >= 0 && draw <= 1);
      mean += draw / kDraws;
      squares += (draw - 0.5) * (draw - 0.5) / kDraws;
    }
    EXPECT_NEAR(mean, 0.5, 4 * 0.0025) << a;
    EXPECT_NEAR(squares, 1 / (4 * (2 * a + 1)), 4 * 0.0025 / 8) << a;
  }
}

// Where the distribution function is known: arc sine, uniform, cubic.
TEST(Mix, FactorsHaveTheDistributionOfBeta) {
  const auto share_below = [](double a, double x) {
    const auto draws = beta_draws(a);
    return static_cast<double>(std::ranges::count_if(draws, [x](double draw) { return draw < x; })) / kDraws;
  };
  for (const double x : {0.001, 0.1, 0.3, 0.75, 0.99}) {
    const double allowed = 4.5 * std::sqrt(0.25 / kDraws);
    EXPECT_NEAR(share_below(0.5, x), 2 / std::numbers::pi * std::asin(std::sqrt(x)), allowed) << x;
    EXPECT_NEAR(share_below(1, x), x, allowed) << x;
    EXPECT_NEAR(share_below(2, x), x * x * (3 - 2 * x), allowed) << x;
  }
}

TEST(Mix, FactorsOfExtremeParametersAreNumbers) {
  base::Rng rng(3, base::Purpose::test);
  for (int i = 0; i < 1000; ++i) {
    const double small = draw_beta(1e-4, rng);
    EXPECT_TRUE(small >= 0 && small <= 1) << small;
    EXPECT_NEAR(draw_beta(1e6, rng), 0.5, 0.01);
  }
}

const ImageFormat kImage{.height = 20, .width = 31, .channels = 3};

std::vector<float> floats(std::uint64_t seed) {
  base::Rng rng(seed, base::Purpose::test);
  std::vector<float> values(static_cast<std::size_t>(kImage.bytes()));
  std::ranges::generate(values, [&] { return rng.normal(); });
  return values;
}

// The weights of the labels are what the images show: means of an image of ones that is mixed into zeros.
TEST(Mix, ShareIsThePartOfTheOther) {
  int cuts = 0, empty = 0;
  for (const MixOptions& options :
       {MixOptions{.mixup = 0.2}, {.cutmix = 1}, {.mixup = 0.2, .cutmix = 1, .seed = 7}}) {
    for (std::int64_t pair = 0; pair < 1000; ++pair) {
      const PairMix mixed = draw_pair(options, kImage, 2, pair);
      if (options.cutmix == 0 || options.mixup == 0) {
        EXPECT_EQ(mixed.is_cut, options.mixup == 0);
      }
      if (options.mixup > 0 && options.cutmix > 0) cuts += mixed.is_cut ? 1 : 0;
      std::vector<float> own(static_cast<std::size_t>(kImage.bytes()), 0.0f);
      mix_into(kImage, mixed, std::vector<float>(own.size(), 1.0f), own);
      double sum = 0;
      for (const float value : own) sum += static_cast<double>(value);
      ASSERT_NEAR(sum / static_cast<double>(own.size()), static_cast<double>(mixed.share), 1e-7);
      empty += mixed.is_cut && mixed.share == 0 ? 1 : 0;
    }
  }
  EXPECT_NEAR(cuts, 500, 4.5 * std::sqrt(250)) << "one of the two ways, with equal chance";
  EXPECT_GT(empty, 0) << "a small draw cuts nothing";
}

// Mixup as it is written, and the box; a pair shows each pixel of both images once.
TEST(Mix, PairsAreOppositeMixes) {
  const auto first = floats(1), second = floats(2);
  for (std::int64_t pair = 0; pair < 50; ++pair) {
    const PairMix mixed = draw_pair({.mixup = 1, .cutmix = 1}, kImage, 0, pair);
    auto a = first, b = second;
    mix_into(kImage, mixed, second, a);
    mix_into(kImage, mixed, first, b);
    for (std::size_t i = 0; i < a.size(); ++i) {
      const auto pixel = static_cast<int>(i) / kImage.channels;
      const int y = pixel / kImage.width, x = pixel % kImage.width;
      const bool is_inside =
          y >= mixed.top && y < mixed.top + mixed.height && x >= mixed.left && x < mixed.left + mixed.width;
      const float want = mixed.is_cut ? (is_inside ? second[i] : first[i])
                                      : (1 - mixed.share) * first[i] + mixed.share * second[i];
      ASSERT_NEAR(static_cast<double>(a[i]), static_cast<double>(want), 1e-6);
      ASSERT_NEAR(static_cast<double>(a[i] + b[i]), static_cast<double>(first[i] + second[i]), 2e-6);
    }
  }
}

// Of a square of 64 and half of its area: sides of 2 * floor(64 * sqrt(1/2) / 2) = 44, cut off at edges.
TEST(Mix, BoxesAreCutOffAtTheEdges) {
  const ImageFormat square{.height = 64, .width = 64, .channels = 1};
  int whole = 0;
  for (std::int64_t pair = 0; pair < 500; ++pair) {
    const PairMix cut = draw_pair({.cutmix = 1e9}, square, 0, pair);
    EXPECT_TRUE(cut.height == 44 || cut.top == 0 || cut.top + cut.height == 64);
    EXPECT_TRUE(cut.width == 44 || cut.left == 0 || cut.left + cut.width == 64);
    EXPECT_TRUE(cut.height >= 22 && cut.height <= 44 && cut.width >= 22 && cut.width <= 44);
    EXPECT_EQ(cut.share, static_cast<float>(cut.height * cut.width / 4096.0));
    whole += cut.height == 44 && cut.width == 44 ? 1 : 0;
  }
  EXPECT_NEAR(whole, 500.0 * 21 * 21 / 64 / 64, 30) << "where the centre is 22 from each edge";
}

TEST(Mix, DrawsDependOnSeedEpochAndPair) {
  const auto share = [](std::uint64_t seed, std::int64_t epoch, std::int64_t pair) {
    return draw_pair({.mixup = 1, .seed = seed}, kImage, epoch, pair).share;
  };
  EXPECT_EQ(share(1, 2, 3), share(1, 2, 3));
  EXPECT_NE(share(1, 2, 3), share(0, 2, 3));
  EXPECT_NE(share(1, 2, 3), share(1, 3, 3));
  EXPECT_NE(share(1, 2, 3), share(1, 2, 2));
}

/// What loaders of several workers yield together in `steps` steps.
struct Mixed {
  std::vector<float> images;
  std::vector<std::int32_t> labels, second;
  std::vector<float> weights;
  bool operator==(const Mixed&) const = default;
};

Mixed mixed(const NumberedDataset& set, LoaderOptions options, int workers, int steps) {
  options.local_batch = options.global_batch / workers;
  std::vector<std::unique_ptr<Loader>> loaders;
  for (int rank = 0; rank < workers; ++rank) {
    options.first = rank * options.local_batch;
    loaders.push_back(
        std::make_unique<Loader>(set, Sampler(set.size(), 5), full_augment(set.format(), 5), options));
  }
  Mixed all;
  for (int step = 0; step < steps; ++step)
    for (auto& loader : loaders) {
      const Batch& batch = loader->next();
      all.images.insert(all.images.end(), batch.images.begin(), batch.images.end());
      all.labels.insert(all.labels.end(), batch.labels.begin(), batch.labels.end());
      EXPECT_EQ(batch.second_labels.size(), options.mix.is_none() ? 0 : batch.labels.size());
      for (const auto& second : batch.second_labels) {
        all.second.push_back(second.label);
        all.weights.push_back(second.weight);
      }
    }
  return all;
}

// Also where a worker's batch is one sample, or odd, so that pairs lie in two workers' batches.
TEST(Loader, MixesTheSameForAnyWorkers) {
  const NumberedDataset set(103);
  const LoaderOptions options{.global_batch = 24, .mix = {.mixup = 0.4, .cutmix = 1, .seed = 9}};
  const Mixed alone = mixed(set, options, 1, 9);
  for (const int workers : {2, 3, 4, 8, 24})
    EXPECT_TRUE(mixed(set, options, workers, 9) == alone) << workers << " workers";
  LoaderOptions late = options;
  late.start_epoch = 1;  // the fifth batch of four in an epoch
  const Mixed rest = mixed(set, late, 1, 5);
  EXPECT_TRUE(std::ranges::equal(rest.images, std::span(alone.images).last(rest.images.size())));
  EXPECT_TRUE(std::ranges::equal(rest.weights, std::span(alone.weights).last(rest.weights.size())));
}

TEST(Loader, MixesTheSameBitsForAnyThreads) {
  const NumberedDataset set(500);
  LoaderOptions options{.global_batch = 70, .mix = {.mixup = 0.4, .cutmix = 1, .seed = 9}};
  const Mixed one = mixed(set, options, 1, 10);
  for (const int threads : {0, 2, 3, 8}) {
    options.threads = threads;
    EXPECT_TRUE(mixed(set, options, 1, 10) == one) << threads << " threads";
    EXPECT_TRUE(mixed(set, options, 2, 10) == one) << threads << " threads, in batches of 35";
  }
}

// Beside a loader that does not mix. 22 samples in batches of 21: the last of an epoch is mixed with the one
// that is dropped; of 21 samples the last has no partner.
TEST(Loader, MixesNeighboursOfTheEpoch) {
  for (const std::int64_t size : {21, 22, 40}) {
    SCOPED_TRACE(size);
    const NumberedDataset set(size);
    const std::int64_t batch = size == 40 ? 20 : 21;
    const LoaderOptions plain{.global_batch = batch};
    LoaderOptions options = plain;
    options.mix = {.mixup = 1, .cutmix = 1, .seed = 4};
    const int steps = size == 40 ? 4 : 2;  // two epochs
    const Mixed got = mixed(set, options, 1, steps);
    Mixed want = mixed(set, plain, 1, steps);
    EXPECT_EQ(got.labels, want.labels);
    const auto values = static_cast<std::size_t>(set.format().bytes());
    const Sampler order(size, 5);
    const Augment augment = full_augment(set.format(), 5);
    const std::int64_t of_epoch = batch * steps / 2;
    std::vector<std::uint8_t> pixels(values);
    std::vector<float> other(values);
    for (std::int64_t i = 0; i < batch * steps; ++i) {
      const std::int64_t epoch = i / of_epoch, position = i % of_epoch, partner = position ^ 1;
      const auto at = static_cast<std::size_t>(i);
      const auto image = std::span(want.images).subspan(at * values, values);
      const auto mixed_image = std::span(got.images).subspan(at * values, values);
      if (partner >= size) {
        EXPECT_EQ(got.weights[at], 0.0f);
        EXPECT_TRUE(std::ranges::equal(mixed_image, image));
        continue;
      }
      const std::int32_t label =
          augment.read_train(set, order.index(epoch, partner), epoch, partner, pixels, other);
      const PairMix pair = draw_pair(options.mix, set.format(), epoch, position / 2);
      mix_into(set.format(), pair, other, image);
      EXPECT_EQ(got.second[at], label);
      EXPECT_EQ(got.weights[at], pair.share);
      EXPECT_TRUE(std::ranges::equal(mixed_image, image)) << "position " << position;
    }
  }
}

// Where batches hold whole pairs, no image is read for its partner.
TEST(Loader, ReadsEachMixedImageOnce) {
  const NumberedDataset set(64);
  (void)mixed(set, {.global_batch = 32, .threads = 0, .prefetch = 0, .mix = {.mixup = 1}}, 2, 2);
  EXPECT_EQ(set.reads, 64);
  (void)mixed(set, {.global_batch = 32, .threads = 0, .prefetch = 0, .mix = {.mixup = 1}}, 32, 2);
  EXPECT_EQ(set.reads, 64 + 2 * 64) << "batches of one image";
}

TEST(Loader, PlansTheMemoryOfMixing) {
  const ImageFormat format{.height = 2, .width = 3, .channels = 1};
  const LoaderOptions plain{.global_batch = 10, .local_batch = 10, .threads = 2, .prefetch = 2};
  LoaderOptions options = plain;
  options.mix.cutmix = 1;
  EXPECT_EQ(Loader::planned_bytes(format, options),
            Loader::planned_bytes(format, plain) + 3 * 10 * 8 + 2 * 24);
}

}  // namespace
}  // namespace paceline::data
