#include "engine/ghost/phases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <string>

#include "base/error.h"

namespace paceline::engine::ghost {
namespace {

using testing::HasSubstr;

std::string refusal(const char* text) {
  try {
    (void)parse_phases(text);
  } catch (const base::Error& error) {
    return error.what();
  }
  return "accepted";
}

TEST(Phases, AreReadAndWritten) {
  const char* const text =
      "forward=80ms,backward=160ms,update=5ms,spread=3%,batch=32,ready=4000:40ms/8000:150ms";
  const auto phases = parse_phases(text);
  EXPECT_EQ(phases, (Phases{.forward_s = 0.08,
                            .backward_s = 0.16,
                            .update_s = 0.005,
                            .spread = 0.03,
                            .batch = 32,
                            .ready = {{4000, 0.04}, {8000, 0.15}}}));
  EXPECT_EQ(text_of(phases), text);
  EXPECT_EQ(text_of(parse_phases("forward=0.25s,backward=500us")), "forward=250ms,backward=0.5ms");
}

TEST(Phases, AreRefusedWithTheReason) {
  EXPECT_THAT(refusal("forward=80ms"), HasSubstr("times of forward and backward above 0"));
  EXPECT_THAT(refusal("no-such-record.json"), HasSubstr("must be written as forward=80ms,backward=160ms"));
  EXPECT_THAT(refusal("forward=80,backward=160"), HasSubstr("has '80', which is not a number"));
  EXPECT_THAT(refusal("forward=80s,backward=160ms"), HasSubstr("at most 2 s"));
  EXPECT_THAT(refusal("forward=1ms,backward=1ms,spread=101%"), HasSubstr("at most 100%"));
  EXPECT_THAT(refusal("forward=1ms,backward=1ms,spread=0.1"), HasSubstr("units %"));
  EXPECT_THAT(refusal("forward=1ms,backward=1ms,batch=0"), HasSubstr("from 1 to 1000000"));
  EXPECT_THAT(refusal("forward=1ms,backward=9ms,ready=8:2ms/4:3ms"), HasSubstr("ascending"));
  EXPECT_THAT(refusal("forward=1ms,backward=9ms,ready=4:3ms/8:2ms"), HasSubstr("ascending"));
  EXPECT_THAT(refusal("forward=1ms,backward=9ms,ready=4"), HasSubstr("has ''"));
  EXPECT_THAT(refusal("forward=1ms,backward=2ms,ready=8:3ms"), HasSubstr("within the time of backward"));
}

TEST(Phases, DrawWorkOfTheirMeanAndSpread) {
  constexpr double kSpread = 0.2;
  constexpr int kDraws = 20'000;
  double sum = 0, squares = 0;
  for (int step = 0; step < kDraws; ++step) {
    const double factor = work_factor(kSpread, 7, static_cast<std::uint64_t>(step), 32);
    EXPECT_GT(factor, 0);
    sum += factor;
    squares += factor * factor;
  }
  const double mean = sum / kDraws, deviation = std::sqrt(squares / kDraws - mean * mean);
  // Five standard errors, 0.2 / sqrt(20,000) = 0.0014; that of the deviation is about as large.
  EXPECT_NEAR(mean, 1, 0.007);
  EXPECT_NEAR(deviation, kSpread, 0.007);
  EXPECT_EQ(work_factor(0, 7, 1, 32), 1);
}

TEST(Phases, DrawBySeedStepAndWorker) {
  std::set<double> drawn;
  for (const std::uint64_t seed : {1, 2})
    for (const std::uint64_t step : {0, 1})
      for (const std::int64_t position : {0, 32}) {
        drawn.insert(work_factor(0.1, seed, step, position));
        EXPECT_EQ(work_factor(0.1, seed, step, position), work_factor(0.1, seed, step, position));
      }
  EXPECT_EQ(drawn.size(), 8u);
}

}  // namespace
}  // namespace paceline::engine::ghost
