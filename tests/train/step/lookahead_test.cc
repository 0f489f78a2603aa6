#include "train/step/lookahead.h"

#include <gtest/gtest.h>

namespace paceline::train {
namespace {

TEST(Lookahead, KeepsAConstantPartOrOneThatGrows) {
  EXPECT_EQ(kept_part({.steps = 5, .keep = 0.5}, 5, 100), 0.5);
  EXPECT_EQ(kept_part({.steps = 5, .keep = 0.8, .power = 3}, 50, 100), 0.1);
  EXPECT_EQ(kept_part({.steps = 5, .keep = 0.8, .power = 3}, 100, 100), 0.8);
}

TEST(Lookahead, FollowsEveryFewUpdatesAndAfterTheLast) {
  Lookahead lookahead({.steps = 3, .keep = 0.75});
  std::vector<float> weights{8, -8};
  lookahead.begin(weights);
  std::vector<std::int64_t> looks;
  for (std::int64_t done = 1; done <= 7; ++done) {
    weights[0] += 4;
    if (!lookahead.is_due(done, 7)) continue;
    lookahead.follow(done, 7, weights);
    looks.push_back(done);
  }
  EXPECT_EQ(looks, (std::vector<std::int64_t>{3, 6, 7}));
  // 8 -> 20: 11; 11 -> 23: 14; 14 -> 18: 15.
  EXPECT_EQ(weights, (std::vector<float>{15, -8}));
  EXPECT_EQ(lookahead.slow()[0], 15);
}

TEST(Lookahead, IsNothingWithoutSteps) {
  Lookahead lookahead({});
  std::vector<float> weights{1};
  lookahead.begin(weights);
  EXPECT_TRUE(lookahead.slow().empty());
  weights[0] = 2;
  EXPECT_FALSE(lookahead.is_due(1, 1));
}

}  // namespace
}  // namespace paceline::train
