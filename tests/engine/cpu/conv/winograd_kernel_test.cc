// Winograd in the algorithm's own kernels, of every instruction set that is here: precisions, bias, and how a
// batch is cut. That all shapes in fp32 are right is kernel_test.cc's, the tables' loops are
// winograd_test.cc's.

#include "engine/cpu/conv/winograd_kernel.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/cpu/conv/algorithms.h"
#include "engine/cpu/conv/kernel_runs.h"
#include "engine/cpu/conv/winograd_runs.h"

namespace paceline::engine::cpu {
namespace {

/// The same sums of bf16 numbers: d_weight is as exact as in fp32, values are rounded once more, to 8 bits.
/// Float copies are not, but multiplied by rounded weights all the same.
TEST(WinogradKernel, MultipliesBf16StoredOrCopied) {
  int computed = 0;
  for (const Case& c : kKernelCases)
    for (const bool copied : {false, true}) {
      ConvShape s = shape_of(c);
      s.in_blocks = copied;
      s.type = s.dst_type = copied ? Storage::f32 : Storage::bf16;
      if (find_algorithm("winograd")->refusal({.shape = s})) continue;
      SCOPED_TRACE(text_of(c) + (copied ? ", copied" : ""));
      const Values src = rounded_to_bf16(random_values(s.samples * s.src.elements(), 1)),
                   weight = random_values(s.weights(), 2), rounded = rounded_to_bf16(weight),
                   d_dst = rounded_to_bf16(random_values(s.samples * s.dst.elements(), 3));
      const Expected want(s, {.src = src, .weight = rounded, .d_dst = d_dst});
      for (const auto* table : winograd::kernels_here()) {
        SCOPED_TRACE(name_of(table->isa));
        const auto error = [&](Direction direction, const std::vector<double>& expected) {
          const auto kernel = make_winograd(s, direction, *table);
          const auto got = results_of(*kernel, s, direction, {.src = src, .weight = weight, .d_dst = d_dst});
          return relative_error(got.values, expected);
        };
        // A rounding to 8 bits moves a number by 2^-10 of its power of two on average, 2^-9 at most.
        const auto limit = [&](std::int64_t length) {
          return (12 + 1.5 * std::sqrt(static_cast<double>(length))) * 0x1p-24;
        };
        EXPECT_LT(error(Direction::forward, want.dst), copied ? limit(9 * s.src.channels) : 0x1p-9);
        EXPECT_LT(error(Direction::backward_data, want.d_src), copied ? limit(9 * s.dst.channels) : 0x1p-9);
        EXPECT_LT(error(Direction::backward_weights, want.d_weight), limit(s.samples * s.dst_pixels()));
        ++computed;
      }
    }
  EXPECT_EQ(computed, 2 * 19 * static_cast<int>(winograd::kernels_here().size()));
}

TEST(WinogradKernel, AddsABiasAndSumsItsGradient) {
  int computed = 0;
  for (const Case& c : kKernelCases)
    for (const Storage storage : {Storage::f32, Storage::bf16}) {
      ConvShape s = shape_of(c);
      s.bias = true;
      s.type = s.dst_type = storage;
      if (find_algorithm("winograd")->refusal({.shape = s})) continue;
      SCOPED_TRACE(text_of(c));
      const auto values = [&](std::int64_t count, std::uint64_t seed) {
        return rounded_to_bf16(random_values(count, seed));
      };
      const Values src = values(s.samples * s.src.elements(), 1), weight = values(s.weights(), 2),
                   d_dst = values(s.samples * s.dst.elements(), 3), bias = random_values(s.dst.channels, 4);
      const Data data{.src = src, .weight = weight, .d_dst = d_dst, .bias = bias};
      const Expected want(s, data);
      const double root = std::sqrt(static_cast<double>(9 * s.src.channels));
      for (const auto* table : winograd::kernels_here()) {
        SCOPED_TRACE(name_of(table->isa));
        const auto results = [&](Direction direction) {
          return results_of(*make_winograd(s, direction, *table), s, direction, data);
        };
        EXPECT_LT(relative_error(results(Direction::forward).values, want.dst),
                  storage == Storage::bf16 ? 0x1p-9 : (12 + 1.5 * root) * 0x1p-24);
        EXPECT_LT(relative_error(results(Direction::backward_weights).d_bias, want.d_bias), 0x1p-22);
        ++computed;
      }
    }
  EXPECT_EQ(computed, 2 * 19 * static_cast<int>(winograd::kernels_here().size()));
}

TEST(WinogradKernel, CutsABatchIntoAnEvenNumberOfEqualPieces) {
  const auto samples = [](int batch, Direction direction) {
    return find_algorithm("winograd")->chunk(shape_of({256, 256, 8, 8, 3, 1, 1, batch}), direction);
  };
  // At most 24 samples, 96 tiles, read the weights together.
  for (const auto& [batch, want] :
       {std::pair{1, 1}, {16, 8}, {24, 12}, {25, 13}, {32, 16}, {64, 16}, {65, 17}, {128, 22}, {129, 22}}) {
    EXPECT_EQ(samples(batch, Direction::forward), want) << batch;
    EXPECT_EQ(samples(batch, Direction::backward_data), want) << batch;
  }
  EXPECT_EQ(samples(128, Direction::backward_weights), 32);  // whose chunks each sum up a copy of the weights
}

}  // namespace
}  // namespace paceline::engine::cpu
