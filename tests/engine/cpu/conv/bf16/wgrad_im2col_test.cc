// Gradients of weights of few channels, unfolded: first layers.

#include <gtest/gtest.h>

#include <string>

#include "engine/cpu/conv/bf16/tile_runs.h"
#include "engine/cpu/kernels/bf16/tiles.h"

namespace paceline::engine::cpu {
namespace {

using units::Unit;

class WgradIm2col : public OnUnit {};
INSTANTIATE_TEST_SUITE_P(Units, WgradIm2col, every_unit(), name_of_unit);

TEST_P(WgradIm2col, ComputesLikeSumsInDouble) { expect_sums_in_double("wgrad-im2col", GetParam(), 20); }

TEST_P(WgradIm2col, PacksAlikeForAnySamples) {
  expect_packed_alike("wgrad-im2col", {3, 40, 40, 41, 3, 1, 1, 33}, kernels());
}

TEST_P(WgradIm2col, TakesConvolutionsAboveOnePixelOverAtMostEightChannels) {
  const auto refusal = [&](const Case& c, Direction direction = Direction::backward_weights) {
    return bf16_refusal("wgrad-im2col", bf16_shape_of(c), direction, GetParam());
  };
  const std::string many = "is for convolutions above 1x1 over at most 8 channels";
  EXPECT_EQ(refusal({3, 64, 32, 32, 3, 1, 1, 32}), "");
  EXPECT_EQ(refusal({8, 64, 32, 32, 7, 2, 3, 1}), "");
  EXPECT_EQ(refusal({9, 64, 32, 32, 3, 1, 1, 32}), many);
  EXPECT_EQ(refusal({3, 64, 32, 32, 1, 1, 0, 32}), many);
  EXPECT_EQ(refusal({3, 10, 1, 1, 0, 1, 0, 32}), many) << "dense";
  EXPECT_EQ(refusal({3, 64, 32, 32, 3, 1, 1, 32}, Direction::forward), "is for backward weights");
}

}  // namespace
}  // namespace paceline::engine::cpu
