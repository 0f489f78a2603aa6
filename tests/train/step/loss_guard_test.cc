/// The rule by which a training is found to diverge while its loss is finite, and the votes it goes by.

#include "train/step/loss_guard.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>

namespace paceline::train {
namespace {

constexpr std::int64_t kBatch = 16;
constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();

Votes step_of(double loss) {
  return {.not_finite = !std::isfinite(loss), .loss = std::isfinite(loss) ? loss * kBatch : 0};
}

LossGuard guard(OnNan on_nan = OnNan::stop, bool watches = true) { return {on_nan, 10, kBatch, watches}; }

TEST(Votes, SumToTheSameLossHoweverSamplesAreSharedOut) {
  std::mt19937_64 random(1);
  for (int trial = 0; trial < 200; ++trial) {
    std::vector<double> losses(16);
    for (auto& loss : losses)  // multiples of 2^-24, as engines round them
      loss = std::round(std::ldexp(std::exp(std::normal_distribution(0.0, 4.0)(random)), 24)) * 0x1p-24;
    std::optional<double> first;
    for (const std::size_t ranks : {1, 2, 4, 16}) {
      std::array<float, kVoteFloats> sums{};
      for (std::size_t rank = 0; rank < ranks; ++rank) {
        double own = 0;
        for (std::size_t i = 0; i < losses.size() / ranks; ++i)
          own += losses[rank * losses.size() / ranks + i];
        const auto floats = as_floats({.stop = rank == 1, .loss = own});
        for (std::size_t i = 0; i < sums.size(); ++i) sums[i] += floats[i];
      }
      const auto all = votes_from(sums);
      EXPECT_EQ(all.stop, ranks > 1);
      EXPECT_FALSE(all.not_finite || all.enough);
      if (!first) first = all.loss;
      EXPECT_EQ(all.loss, *first) << ranks;
    }
    double whole = 0;
    for (const double loss : losses) whole += loss;
    EXPECT_EQ(*first, whole);
  }
}

TEST(Votes, TellALossThatIsNotFiniteOrTooLarge) {
  for (const double loss : {kNaN, std::numeric_limits<double>::infinity(), -1.0})
    EXPECT_EQ(votes_from(as_floats({.loss = loss})).loss, 0);
  EXPECT_EQ(votes_from(as_floats({.loss = 1e30})).loss, 0x1p35);
}

TEST(LossGuard, FindsALossThatExplodesAndNamesTheNumbers) {
  auto watched = guard();
  for (int step = 0; step < 40; ++step) ASSERT_EQ(watched.see(step_of(2.3)), Verdict::good);
  for (int step = 0; step < LossGuard::kSteps - 1; ++step) {
    ASSERT_EQ(watched.see(step_of(1e9)), Verdict::above) << step;
    EXPECT_FALSE(is_good(watched.state()));
  }
  EXPECT_EQ(watched.see(step_of(1e9)), Verdict::diverged);
  EXPECT_EQ(watched.bad_before(), LossGuard::kSteps - 1) << "the first bad weights are known";
  EXPECT_EQ(
      watched.what(),
      "the loss is 1e+09, above 23.03 (10 times the lowest median of 32 steps, 2.3, and 10 times a uniform guess, "
      "2.303)");
}

TEST(LossGuard, FindsGrowthByAnyFactorAStep) {
  for (const double factor : {1.001, 1.02, 1.5, 10.0, 1e4}) {
    auto watched = guard();
    double loss = 2.3;
    Verdict last = Verdict::good;
    for (int step = 0; step < 20000 && last != Verdict::diverged && loss < 1e5; ++step, loss *= factor)
      last = watched.see(step_of(loss));
    while (last != Verdict::diverged && loss < 1e200) last = watched.see(step_of(loss *= factor));
    EXPECT_EQ(last, Verdict::diverged) << factor;
    if (factor < 2) {
      EXPECT_LT(loss, 24 * std::pow(factor, LossGuard::kSteps + 1)) << factor;
    }
  }
}

TEST(LossGuard, LetsTrainingsLearnThatOnlyLookWild) {
  auto bad_start = guard();  // large first weights
  for (double loss = 500; loss > 0.01; loss *= 0.97) ASSERT_EQ(bad_start.see(step_of(loss)), Verdict::good);
  for (int step = 0; step < 1000; ++step)  // from a hundredth to a guess, and back: a restart
    ASSERT_EQ(bad_start.see(step_of(step % 100 < 50 ? 0.01 : 20)), Verdict::good);
  for (int step = 0; step < 1000; ++step)  // a batch of one sample, mistaken nine times in ten
    ASSERT_NE(bad_start.see(step_of(step % 10 == 0 ? 0.01 : 60)), Verdict::diverged) << step;
}

TEST(LossGuard, StopsAtOnceWhereTheLossIsNotFinite) {
  auto watched = guard();
  EXPECT_EQ(watched.see(step_of(2.3)), Verdict::good);
  EXPECT_EQ(watched.see(step_of(kNaN)), Verdict::diverged);
  auto window = guard(OnNan::skip, false);
  EXPECT_EQ(window.see(step_of(1e30)), Verdict::good) << "a timed window of a few steps has no history";
  EXPECT_EQ(window.see(step_of(kNaN)), Verdict::diverged);
}

TEST(LossGuard, SkipsBadStepsButNotWithoutEnd) {
  auto watched = guard(OnNan::skip);
  EXPECT_EQ(watched.see(step_of(2.3)), Verdict::good);
  for (int round = 0; round < 3; ++round) {
    for (int step = 0; step < LossGuard::kMostSkips; ++step)
      ASSERT_EQ(watched.see(step_of(step % 2 == 0 ? kNaN : 1e9)), Verdict::skipped);
    ASSERT_EQ(watched.see(step_of(2.2)), Verdict::good);
  }
  EXPECT_EQ(watched.state().skipped, 3 * LossGuard::kMostSkips);
  for (int step = 0; step < LossGuard::kMostSkips; ++step) (void)watched.see(step_of(kNaN));
  EXPECT_EQ(watched.see(step_of(kNaN)), Verdict::diverged);
}

TEST(LossGuard, GoesOnFromItsStateAsIfNothingHadBeen) {
  std::mt19937_64 random(7);
  auto whole = guard(), first = guard();
  for (int step = 0; step < 300; ++step) {
    const double loss = std::exp(std::normal_distribution(1.0, 1.5)(random));
    auto second = guard();
    second.resume(first.state());
    EXPECT_EQ(second.see(step_of(loss)), whole.see(step_of(loss)));
    EXPECT_EQ(second.state(), whole.state());
    first.resume(second.state());
  }
}

}  // namespace
}  // namespace paceline::train
