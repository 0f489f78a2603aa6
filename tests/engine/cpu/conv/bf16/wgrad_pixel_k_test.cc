// Gradients of weights summed over pairs of samples, pixel by pixel.

#include <gtest/gtest.h>

#include <string>

#include "engine/cpu/conv/bf16/tile_runs.h"
#include "engine/cpu/kernels/bf16/tiles.h"

namespace paceline::engine::cpu {
namespace {

using units::Unit;

class WgradPixelK : public OnUnit {};
INSTANTIATE_TEST_SUITE_P(Units, WgradPixelK, testing::Values(Unit::emulated_amx, Unit::amx), name_of_unit);

TEST_P(WgradPixelK, ComputesLikeSumsInDouble) { expect_sums_in_double("wgrad-pixel-k", GetParam(), 40); }

TEST_P(WgradPixelK, PacksAlikeForAnySamples) {
  expect_packed_alike("wgrad-pixel-k", {64, 32, 9, 16, 3, 1, 1, 33}, kernels());
}

TEST(WgradPixelKShapes, HavePixelsOrAStrideAndWholeBlocks) {
  const auto takes = [](const Case& c, Unit unit = Unit::emulated_amx) {
    return bf16_refusal("wgrad-pixel-k", bf16_shape_of(c), Direction::backward_weights, unit).empty();
  };
  // The convolutions of ResNet-18, for small images and for large ones.
  EXPECT_TRUE(takes({64, 64, 32, 32, 3, 1, 1, 32}));
  EXPECT_TRUE(takes({128, 128, 16, 16, 3, 1, 1, 32}));
  EXPECT_TRUE(takes({64, 128, 32, 32, 3, 2, 1, 32}));
  EXPECT_TRUE(takes({256, 512, 8, 8, 3, 2, 1, 32}));
  EXPECT_TRUE(takes({256, 256, 14, 14, 3, 1, 1, 16}));
  EXPECT_TRUE(takes({256, 256, 8, 8, 3, 1, 1, 32}));
  EXPECT_FALSE(takes({512, 512, 7, 7, 3, 1, 1, 32})) << "few pixels";
  EXPECT_FALSE(takes({512, 512, 4, 4, 3, 1, 1, 32})) << "few pixels";
  EXPECT_FALSE(takes({64, 128, 32, 32, 1, 2, 0, 32})) << "one tap";
  EXPECT_FALSE(takes({64, 64, 32, 32, 5, 1, 2, 32})) << "five taps";
  EXPECT_FALSE(takes({64, 64, 32, 32, 3, 1, 3, 32})) << "padding as wide as the kernel";
  EXPECT_FALSE(takes({48, 64, 32, 32, 3, 1, 1, 32})) << "no whole blocks";
  EXPECT_FALSE(takes({64, 48, 32, 32, 3, 1, 1, 32})) << "no whole blocks";
  EXPECT_FALSE(takes({64, 64, 32, 32, 3, 1, 1, 32}, Unit::emulated_avx512));
  const auto name = [](const Case& c) {
    const auto& kernels = units::kernels_of(Unit::emulated_amx);
    return std::string(usual_bf16_algorithm(bf16_shape_of(c), Direction::backward_weights, kernels).name);
  };
  EXPECT_EQ(name({64, 64, 32, 32, 3, 1, 1, 32}), "wgrad-pixel-k");
  EXPECT_EQ(name({64, 64, 4, 4, 3, 1, 1, 32}), "wgrad-batch-k");
  EXPECT_EQ(name({3, 64, 32, 32, 3, 1, 1, 32}), "wgrad-im2col");
}

}  // namespace
}  // namespace paceline::engine::cpu
