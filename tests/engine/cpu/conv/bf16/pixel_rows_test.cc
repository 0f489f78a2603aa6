// Strips: rows of pixels as tiles, forward and backward data.

#include <gtest/gtest.h>

#include <string>

#include "engine/cpu/conv/bf16/tile_runs.h"
#include "engine/cpu/kernels/bf16/tiles.h"

namespace paceline::engine::cpu {
namespace {

using units::Unit;

class PixelRows : public OnUnit {};
INSTANTIATE_TEST_SUITE_P(Units, PixelRows, testing::Values(Unit::emulated_amx, Unit::amx), name_of_unit);

TEST_P(PixelRows, ComputesLikeSumsInDouble) { expect_sums_in_double("pixel-rows", GetParam(), 40); }

TEST_P(PixelRows, PacksAlikeForAnySamples) {
  expect_packed_alike("pixel-rows", {32, 64, 6, 16, 3, 1, 1, 33}, kernels());
}

TEST(PixelRowsShapes, AreLongRowsOfWholeBlocks) {
  const auto directions = [&](const Case& c) {
    std::string found;
    for (const Direction direction : kAllDirections)
      if (bf16_refusal("pixel-rows", bf16_shape_of(c), direction).empty())
        found += direction == Direction::forward ? "f" : "s";
    return found;
  };
  EXPECT_EQ(directions({32, 64, 6, 16, 3, 1, 1, 3}), "fs");
  EXPECT_EQ(directions({32, 64, 7, 45, 3, 1, 1, 2}), "fs");  // three tiles of a row
  EXPECT_EQ(directions({32, 32, 9, 60, 3, 2, 1, 1}), "f") << "backward with a stride";
  EXPECT_EQ(directions({32, 32, 9, 64, 7, 2, 3, 1}), "f");
  EXPECT_EQ(directions({32, 32, 9, 47, 2, 3, 1, 1}), "f");
  EXPECT_EQ(directions({32, 32, 5, 17, 2, 1, 0, 1}), "f") << "17 pixels would be 32";
  EXPECT_EQ(directions({32, 32, 4, 14, 3, 1, 2, 2}), "f") << "of 14 pixels there is no tile";
  EXPECT_EQ(directions({32, 40, 6, 16, 3, 1, 1, 3}), "") << "no whole blocks";
  EXPECT_EQ(directions({32, 32, 6, 32, 9, 1, 4, 1}), "") << "too wide a kernel";
  EXPECT_EQ(directions({256, 512, 6, 16, 3, 1, 1, 3}), "") << "weights that no near cache holds";
  ConvShape wide = bf16_shape_of({32, 64, 6, 16, 3, 1, 1, 3});
  wide.dst_type = Storage::f32;
  EXPECT_EQ(bf16_refusal("pixel-rows", wide, Direction::forward), "writes bf16");
  EXPECT_EQ(bf16_refusal("pixel-rows", bf16_shape_of({32, 64, 6, 16, 3, 1, 1, 3}), Direction::forward,
                         Unit::emulated_avx512),
            "is for AMX");
}

}  // namespace
}  // namespace paceline::engine::cpu
