// Convolutions by bf16 tiles, of every unit, against sums in double: the packing, bands, tails, bias and
// rounding around a unit are the same code whether it is emulated or the machine's own.

#include <gtest/gtest.h>

#include <cmath>

#include "engine/cpu/conv/algorithms.h"
#include "engine/cpu/conv/bf16/algorithms.h"
#include "engine/cpu/conv/bf16/on_unit.h"
#include "engine/cpu/conv/kernel_runs.h"
#include "engine/cpu/kernels/bf16/tiles.h"

namespace paceline::engine::cpu {
namespace {

using tiles::Unit;

constexpr Direction kAllDirections[] = {Direction::forward, Direction::backward_data,
                                        Direction::backward_weights};

class TileProduct : public OnUnit {};
INSTANTIATE_TEST_SUITE_P(Units, TileProduct, every_unit(), name_of_unit);

constexpr Case kCases[] = {
    // 3x3, stride 1: one pixel, odd sizes, channels around a block, batches around one
    {32, 32, 1, 1, 3, 1, 1, 1},
    {16, 24, 5, 7, 3, 1, 1, 7},
    {32, 64, 4, 4, 3, 1, 1, 16},
    {33, 31, 3, 5, 3, 1, 1, 17},
    {64, 40, 6, 3, 3, 1, 1, 32},
    {40, 65, 5, 5, 3, 1, 1, 33},
    {3, 16, 9, 9, 3, 1, 1, 7},
    {1, 1, 2, 2, 3, 1, 1, 65},
    {16, 32, 6, 6, 3, 1, 0, 7},
    {24, 16, 5, 4, 3, 1, 2, 3},
    // several bands, of samples a block and a few
    {65, 3, 24, 14, 3, 1, 1, 33},
    {3, 65, 23, 15, 3, 1, 1, 34},
    // several parts: of d_weight; of rows, of channels and of both, where the chunk is alone
    {20, 150, 4, 3, 3, 1, 1, 5},
    {24, 40, 45, 4, 3, 1, 1, 7},
    {33, 290, 5, 4, 3, 1, 1, 9},
    {260, 257, 30, 2, 3, 2, 1, 3},
    // parts whose bands read a row more than those of the whole image: of src, of d_dst
    {16, 8, 58, 25, 3, 2, 1, 2},
    {5, 225, 30, 26, 2, 2, 0, 1},
    // strides, other kernels
    {16, 32, 9, 9, 3, 2, 1, 16},
    {40, 24, 8, 8, 3, 2, 1, 7},
    {24, 40, 7, 7, 1, 2, 0, 33},
    {33, 20, 6, 5, 1, 1, 0, 16},
    {20, 12, 6, 5, 5, 1, 2, 2},
    {3, 24, 15, 14, 7, 2, 3, 17},
    {8, 8, 10, 10, 2, 3, 0, 4},
    {8, 40, 8, 9, 1, 3, 1, 5},
    // few channels, unfolded: several bands, copies of 2 to 4 chunks and of more, windows beyond the image
    {3, 40, 40, 41, 3, 1, 1, 4},
    {4, 33, 30, 29, 7, 2, 3, 11},
    {7, 20, 12, 9, 7, 1, 5, 3},
    {8, 24, 12, 13, 9, 1, 4, 2},
    {2, 16, 3, 4, 2, 1, 4, 3},
    // whole images that do not fit into a band, or only for some numbers of threads
    {350, 40, 8, 8, 3, 1, 1, 33},
    {330, 128, 8, 8, 3, 1, 1, 40},
    {250, 290, 4, 4, 3, 1, 1, 129},  // and parts of 256 output channels and of the rest
    {512, 40, 7, 7, 0, 1, 0, 40},
    // strips (below: which of these are): rows of one tile, of more, and of pixels that are computed twice;
    // parts, strides, kernels of all sizes, edges of all widths
    {32, 64, 6, 16, 3, 1, 1, 3},
    {64, 32, 7, 28, 3, 1, 1, 2},
    {32, 96, 3, 61, 3, 1, 1, 1},
    {96, 32, 1, 25, 3, 1, 1, 2},
    {32, 64, 7, 45, 3, 1, 1, 2},
    {32, 32, 41, 16, 3, 1, 1, 2},
    {32, 32, 20, 40, 3, 1, 0, 1},
    {32, 32, 9, 60, 3, 2, 1, 1},
    {32, 32, 9, 64, 7, 2, 3, 1},
    {32, 32, 9, 47, 2, 3, 1, 1},
    {64, 32, 6, 32, 1, 2, 0, 2},
    {32, 32, 6, 32, 2, 1, 1, 1},
    {32, 32, 5, 30, 5, 1, 2, 2},
    {32, 32, 5, 48, 3, 1, 2, 1},
    {64, 32, 20, 18, 3, 1, 0, 2},
    {32, 32, 5, 17, 2, 1, 0, 1},
    {32, 32, 4, 14, 3, 1, 2, 2},
    // short rows: whole groups of images and others, bands of four rows and others, several parts, edges of
    // all widths, three tiles of a row, either direction alone
    {32, 64, 8, 8, 3, 1, 1, 1},
    {64, 32, 8, 8, 3, 1, 1, 7},
    {96, 64, 8, 8, 3, 1, 1, 2},
    {32, 32, 8, 8, 3, 1, 1, 33},
    {32, 64, 4, 4, 3, 1, 1, 1},
    {64, 64, 4, 4, 3, 1, 1, 7},
    {32, 32, 5, 8, 3, 1, 1, 3},
    {32, 32, 1, 8, 3, 1, 1, 4},
    {64, 32, 7, 12, 3, 1, 1, 6},
    {32, 32, 9, 10, 3, 1, 0, 3},
    {32, 32, 3, 6, 3, 1, 2, 3},
    {32, 64, 9, 8, 3, 1, 2, 2},
    {32, 64, 6, 12, 3, 1, 0, 5},
    // windows that move by two: one image and several, whole groups and others, one band of four rows and
    // several, of results and of d_src, two tiles of a row
    {32, 64, 9, 32, 3, 2, 1, 3},
    {64, 32, 16, 32, 3, 2, 1, 1},
    {32, 32, 1, 32, 3, 2, 1, 2},
    {32, 96, 18, 64, 3, 2, 1, 2},
    {96, 32, 8, 16, 3, 2, 1, 7},
    {32, 64, 16, 16, 3, 2, 1, 16},
    {64, 64, 7, 16, 3, 2, 1, 33},
    {128, 32, 10, 24, 3, 2, 1, 9},
    {32, 128, 8, 8, 3, 2, 1, 7},
    {64, 32, 2, 8, 3, 2, 1, 4},
    {32, 160, 5, 8, 3, 2, 1, 10},
    {32, 32, 12, 8, 3, 2, 1, 1},
    {32, 32, 1, 16, 3, 2, 1, 3},
    {32, 256, 9, 16, 3, 2, 1, 3},
    // ... and as many channels as leave one pixel to write beside each row of a tall strip
    {128, 32, 4, 16, 3, 1, 1, 1},
    {160, 32, 6, 8, 3, 1, 1, 2},
    {32, 128, 5, 16, 3, 1, 1, 1},
    // pairs of samples (below: which of these are): one to sixteen pairs in a pixel, several groups of
    // samples in a band and several bands of rows; strides with columns that are left out, all edges
    {32, 64, 9, 16, 3, 1, 1, 1},
    {64, 32, 40, 8, 3, 1, 1, 7},
    {32, 32, 5, 24, 3, 1, 0, 16},
    {64, 96, 17, 4, 3, 1, 2, 33},
    {32, 32, 3, 37, 3, 1, 1, 34},
    {32, 64, 14, 14, 3, 1, 1, 17},
    {64, 64, 8, 8, 3, 2, 1, 21},
    {32, 32, 7, 15, 3, 2, 1, 2},
    {32, 160, 8, 16, 3, 2, 0, 5},
    {32, 32, 4, 50, 3, 3, 1, 3},
    {32, 32, 1, 1, 3, 2, 1, 3},
    {32, 32, 2, 11, 3, 4, 2, 9},
    // dense layers
    {64, 10, 1, 1, 0, 1, 0, 33},
    {40, 33, 3, 2, 0, 1, 0, 7},
    {512, 10, 1, 1, 0, 1, 0, 1},
};

TEST_P(TileProduct, ComputesLikeSumsInDouble) {
  for (std::size_t i = 0; i < std::size(kCases); ++i) {
    const Case& c = kCases[i];
    const bool has_bias = i % 2 == 0;
    SCOPED_TRACE(text_of(c) + (has_bias ? " with bias" : ""));
    ConvShape s = shape_of(c);
    s.type = s.dst_type = Storage::bf16;
    s.bias = has_bias;
    const auto seed = static_cast<std::uint64_t>(c.in * 1000 + c.samples);
    const Values src = rounded_to_bf16(random_values(s.samples * s.src.elements(), seed));
    const Values weight = rounded_to_bf16(random_values(s.weights(), seed + 1));
    const Values d_dst = rounded_to_bf16(random_values(s.samples * s.dst.elements(), seed + 2));
    const Values bias = random_values(has_bias ? s.dst.channels : 0, seed + 3);
    const Data data{.src = src, .weight = weight, .d_dst = d_dst, .bias = bias};
    const Expected want(s, data);
    const auto run = [&](Direction direction) {
      return results_of(*make_tile_kernel(s, direction, tiles::kernels_of(GetParam())), s, direction, data);
    };
    Values first_gradient, first_forward, first_backward;
    for (const auto& [is_alone, threads] : {std::pair{false, 1}, {true, 1}, {true, 2}, {true, 4}}) {
      s.is_alone = is_alone;
      s.threads = threads;
      s.dst_type = Storage::bf16;
      // Rounding to bf16 is off by at most 2^-8 of a value; sums in float by the root of their length.
      const double taps = static_cast<double>(s.weights()) / s.src.channels / s.dst.channels;
      const auto of_sums = [](double length) { return (2 + 0.75 * std::sqrt(length)) * 0x1p-24; };
      const Values forward = run(Direction::forward).values, backward = run(Direction::backward_data).values;
      if (first_forward.empty()) first_forward = forward;
      if (first_backward.empty()) first_backward = backward;
      EXPECT_EQ(forward, first_forward) << "the same bits, in parts";
      EXPECT_EQ(backward, first_backward) << "the same bits, in parts";
      EXPECT_LT(relative_error(forward, want.dst), 0x1p-8 + of_sums(taps * s.src.channels));
      EXPECT_LT(relative_error(backward, want.d_src), 0x1p-8 + of_sums(taps * s.dst.channels));
      const double pixels = static_cast<double>(s.samples * s.dst_pixels());
      const Results gradient = run(Direction::backward_weights);
      if (first_gradient.empty()) first_gradient = gradient.values;
      EXPECT_EQ(gradient.values, first_gradient) << "the same bits, for " << threads << " threads";
      EXPECT_LT(relative_error(gradient.values, want.d_weight), of_sums(pixels));
      // d_bias is small where its terms cancel: its error is that of the terms.
      for (std::size_t k = 0; k < bias.size(); ++k)
        EXPECT_NEAR(gradient.d_bias[k], want.d_bias[k], 8 * pixels * 0x1p-24) << k;
      s.dst_type = Storage::f32;
      EXPECT_LT(relative_error(run(Direction::forward).values, want.dst), of_sums(taps * s.src.channels));
    }
  }
}

TEST_P(TileProduct, ReadsWeightsThatAnotherPieceOfTheBatchPacked) {
  const Case whole{40, 33, 5, 5, 3, 1, 1, 33};
  Case rest = whole;
  rest.samples = 2;
  const auto bytes = [&](const Case& c, Direction direction) {
    ConvShape s = shape_of(c);
    s.type = s.dst_type = Storage::bf16;
    return make_tile_kernel(s, direction, tiles::kernels_of(GetParam()))->packed_bytes();
  };
  for (const Direction direction : kAllDirections) EXPECT_EQ(bytes(whole, direction), bytes(rest, direction));
}

/// Every algorithm computes what it does not refuse, also where another one is usual.
TEST_P(TileProduct, ComputesAlikeByEveryAlgorithmThatCan) {
  const auto& kernels = tiles::kernels_of(GetParam());
  int compared = 0;
  for (const Case& c : kCases) {
    if (c.samples > 7) continue;
    ConvShape s = shape_of(c);
    s.type = s.dst_type = Storage::bf16;
    s.is_alone = true;
    const Values src = rounded_to_bf16(random_values(s.samples * s.src.elements(), 1));
    const Values weight = rounded_to_bf16(random_values(s.weights(), 2));
    const Values d_dst = rounded_to_bf16(random_values(s.samples * s.dst.elements(), 3));
    const Data data{.src = src, .weight = weight, .d_dst = d_dst};
    for (const Direction direction : kAllDirections) {
      const Bf16Algorithm& first = usual_bf16_algorithm(s, direction, kernels);
      const Values want = results_of(*make_kernel(first, s, direction, kernels), s, direction, data).values;
      for (const Bf16Algorithm* other : bf16_algorithms()) {
        if (other == &first || other->refusal(s, direction, kernels)) continue;
        const Values got = results_of(*make_kernel(*other, s, direction, kernels), s, direction, data).values;
        EXPECT_LT(relative_error(got, std::vector<double>(want.begin(), want.end())), 0x1p-8)
            << text_of(c) << ", " << name_of(direction) << ": " << other->name << " and " << first.name;
        ++compared;
      }
    }
  }
  EXPECT_GT(compared, 0);
}

}  // namespace
}  // namespace paceline::engine::cpu
