// Images side by side in a tile, forward and backward data, with and without a stride.

#include "engine/cpu/conv/bf16/algorithms.h"

#include <gtest/gtest.h>

#include <string>

#include "engine/cpu/conv/bf16/tile_runs.h"
#include "engine/cpu/kernels/bf16/tiles.h"

namespace paceline::engine::cpu {
namespace {

using units::Unit;

class PackedImages : public OnUnit {};
INSTANTIATE_TEST_SUITE_P(Units, PackedImages, testing::Values(Unit::emulated_amx, Unit::amx), name_of_unit);

TEST_P(PackedImages, ComputesLikeSumsInDouble) { expect_sums_in_double("packed-images", GetParam(), 40); }

TEST_P(PackedImages, PacksAlikeForAnySamples) {
  expect_packed_alike("packed-images", {32, 64, 8, 8, 3, 1, 1, 33}, kernels());
}

TEST(PackedImagesShapes, AreShortRowsThatFillATileSideBySide) {
  const auto images = [&](const Case& c, Direction direction) {
    const ConvShape s = bf16_shape_of(c);
    const int found = images_side_by_side(s, direction);
    EXPECT_TRUE(found == 0 || !bf16_refusal("pixel-rows", s, direction).empty()) << "either way";
    EXPECT_EQ(bf16_refusal("packed-images", s, direction).empty(), found > 0) << text_of(c);
    const auto& kernels = units::kernels_of(Unit::emulated_amx);
    EXPECT_EQ(usual_bf16_algorithm(s, direction, kernels).name == std::string("packed-images"), found > 0)
        << text_of(c);
    return found;
  };
  constexpr auto kForward = Direction::forward, kBackward = Direction::backward_data;
  for (const Direction direction : {kForward, kBackward}) {
    EXPECT_EQ(images({256, 256, 8, 8, 3, 1, 1, 4}, direction), 2);
    EXPECT_EQ(images({256, 256, 8, 8, 3, 1, 1, 1}, direction), 2) << "any batch";
    EXPECT_EQ(images({64, 64, 4, 4, 3, 1, 1, 4}, direction), 4);
    EXPECT_EQ(images({32, 32, 5, 12, 3, 1, 1, 3}, direction), 4);
    EXPECT_EQ(images({32, 32, 8, 6, 3, 1, 1, 3}, direction), 0) << "eight images";
    EXPECT_EQ(images({32, 32, 8, 7, 3, 1, 1, 3}, direction), 0) << "sixteen images";
    EXPECT_EQ(images({32, 32, 8, 16, 3, 1, 1, 3}, direction), 0) << "long rows";
    EXPECT_EQ(images({32, 40, 8, 8, 3, 1, 1, 3}, direction), 0) << "no whole blocks";
    EXPECT_EQ(images({32, 32, 8, 8, 5, 1, 2, 3}, direction), 0) << "kernel 5";
    EXPECT_EQ(images({32, 64, 9, 16, 3, 2, 1, 3}, direction), 2);
    EXPECT_EQ(images({32, 64, 8, 8, 3, 2, 1, 3}, direction), 4);
    EXPECT_EQ(images({32, 64, 8, 15, 3, 2, 1, 3}, direction), 0) << "more even columns than odd ones";
    EXPECT_EQ(images({32, 64, 8, 18, 3, 2, 0, 3}, direction), 0) << "other taps";
    EXPECT_EQ(images({32, 32, 8, direction == kForward ? 22 : 8, 3, 3, 1, 3}, direction), 0) << "stride 3";
    EXPECT_EQ(images({512, 512, 8, 8, 3, 2, 1, 32}, direction), 0) << "weights that no near cache holds";
    EXPECT_EQ(images({512, 512, 4, 4, 3, 1, 1, 32}, direction), 0) << "weights that no near cache holds";
  }
  EXPECT_EQ(images({256, 256, 8, 8, 3, 1, 1, 4}, Direction::backward_weights), 0);
  EXPECT_EQ(images({32, 64, 32, 32, 3, 2, 1, 3}, kForward), 0) << "long rows";
  EXPECT_EQ(images({32, 64, 32, 32, 3, 2, 1, 3}, kBackward), 1)
      << "pixels of four kinds, though rows are long";
  EXPECT_EQ(images({256, 256, 160, 32, 3, 2, 1, 3}, kBackward), 0) << "an image that no near cache holds";
  EXPECT_EQ(images({32, 32, 9, 10, 3, 1, 0, 3}, kForward), 2) << "rows of results are 8 long";
  EXPECT_EQ(images({32, 32, 9, 10, 3, 1, 0, 3}, kBackward), 0);
  ConvShape floats = bf16_shape_of({64, 64, 8, 8, 3, 1, 1, 4});
  floats.dst_type = Storage::f32;
  EXPECT_EQ(images_side_by_side(floats, kForward), 0);
  EXPECT_EQ(bf16_refusal("packed-images", bf16_shape_of({64, 64, 8, 8, 3, 1, 1, 4}), kForward,
                         Unit::emulated_avx512),
            "is for AMX");
}

}  // namespace
}  // namespace paceline::engine::cpu
