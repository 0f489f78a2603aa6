// oneDNN's kernels by themselves: what takes any shape has no other to lean on.

#include "engine/cpu/conv/onednn.h"

#include <gtest/gtest.h>

#include <cmath>

#include "engine/cpu/conv/algorithms.h"
#include "engine/cpu/conv/kernel_runs.h"

namespace paceline::engine::cpu {
namespace {

constexpr Direction kOnednnDirections[] = {Direction::forward, Direction::backward_data,
                                           Direction::backward_weights};

/// Rounding errors of sums of so many floats.
double limit_of(std::int64_t length) { return (2 + 0.75 * std::sqrt(static_cast<double>(length))) * 0x1p-24; }

TEST(Onednn, AddsABiasAndSumsItsGradient) {
  constexpr Case kCases[] = {{3, 16, 9, 9, 3, 1, 1, 2},  {1, 1, 2, 3, 2, 1, 0, 5},
                             {20, 13, 6, 5, 5, 2, 2, 2}, {7, 5, 1, 1, 1, 1, 0, 33},
                             {40, 33, 3, 2, 0, 1, 0, 7}, {64, 10, 1, 1, 0, 1, 0, 1}};
  const ConvAlgorithm& algorithm = *find_algorithm("onednn");
  for (const Case& c : kCases) {
    SCOPED_TRACE(text_of(c));
    ConvShape s = shape_of(c);
    s.bias = true;
    const Values src = random_values(s.samples * s.src.elements(), 1), weight = random_values(s.weights(), 2),
                 d_dst = random_values(s.samples * s.dst.elements(), 3),
                 bias = random_values(s.dst.channels, 4);
    const Data data{.src = src, .weight = weight, .d_dst = d_dst, .bias = bias};
    const Expected want(s, data);
    const auto results = [&](Direction direction) {
      EXPECT_FALSE(algorithm.refusal({.shape = s, .direction = direction}))
          << "it takes what nobody else does";
      return results_of(*make_kernel(algorithm, s, direction), s, direction, data);
    };
    const std::int64_t taps = s.weights() / s.src.channels / s.dst.channels;
    const auto pixels = s.samples * s.dst_pixels();
    EXPECT_LT(relative_error(results(Direction::forward).values, want.dst),
              limit_of(taps * s.src.channels + 1));
    EXPECT_LT(relative_error(results(Direction::backward_data).values, want.d_src),
              limit_of(taps * s.dst.channels));
    const Results gradient = results(Direction::backward_weights);
    EXPECT_LT(relative_error(gradient.values, want.d_weight), limit_of(pixels));
    // d_bias is small where its terms cancel: its error is that of the terms.
    for (std::size_t k = 0; k < bias.size(); ++k)
      EXPECT_NEAR(gradient.d_bias[k], want.d_bias[k], 8 * static_cast<double>(pixels) * 0x1p-24) << k;
  }
}

/// The last chunk of a batch may have fewer samples, and reads the weights that the first one packed.
TEST(Onednn, ReadsWeightsThatAKernelOfOtherSamplesPacked) {
  for (const Case& whole : {Case{40, 33, 5, 5, 3, 1, 1, 33}, Case{64, 64, 8, 8, 3, 2, 1, 32}}) {
    Case last = whole;
    last.samples = 2;
    const ConvShape s = shape_of(last);
    const Values src = random_values(s.samples * s.src.elements(), 1), weight = random_values(s.weights(), 2),
                 d_dst = random_values(s.samples * s.dst.elements(), 3);
    const Data data{.src = src, .weight = weight, .d_dst = d_dst};
    const Expected want(s, data, {.d_weight = false});
    for (const Direction direction : {Direction::forward, Direction::backward_data}) {
      const auto first = make_onednn_reader(shape_of(whole), direction, nullptr);
      const auto kernel = make_onednn_reader(s, direction, first.get());
      EXPECT_EQ(kernel->packed_bytes(), first->packed_bytes());
      const auto got = results_of(*kernel, s, direction, data, first.get());
      EXPECT_LT(relative_error(got.values, direction == Direction::forward ? want.dst : want.d_src),
                limit_of(9 * 64))
          << text_of(whole) << ", " << name_of(direction);
    }
  }
}

TEST(Onednn, RefusesBf16WhereItCannotMultiplyIt) {
  ConvShape s = shape_of({16, 16, 8, 8, 3, 1, 1, 4});
  EXPECT_FALSE(refusal_of_onednn(s));
  s.type = s.dst_type = Storage::bf16;
  EXPECT_EQ(refusal_of_onednn(s).has_value(), bf16_products_here() == Bf16Products::none);
  for (const Direction direction : kOnednnDirections)
    EXPECT_EQ(find_algorithm("onednn")->refusal({.shape = s, .direction = direction}), refusal_of_onednn(s));
}

/// oneDNN 2.6.3 computed the gradient of taps that read padding alone from what lay in its scratchpad, on
/// images narrower than the stride.
TEST(Onednn, MultipliesBf16OnNarrowImages) {
  constexpr Case kNarrow[] = {
      {17, 16, 9, 1, 3, 2, 1, 2}, {64, 64, 1, 1, 3, 2, 1, 4}, {16, 33, 9, 2, 3, 3, 1, 2},
      {3, 16, 5, 1, 7, 2, 3, 3},  {16, 16, 1, 9, 3, 2, 1, 2}, {5, 22, 4, 1, 5, 1, 2, 2},
      {32, 20, 2, 3, 2, 4, 1, 1}, {33, 17, 9, 9, 3, 2, 1, 3},
  };
  for (const Case& c : kNarrow) {
    ConvShape s = shape_of(c);
    s.type = s.dst_type = Storage::bf16;
    SCOPED_TRACE(text_of(c));
    const auto values = [](std::int64_t count, std::uint64_t seed) {
      return rounded_to_bf16(random_values(count, seed));
    };
    const Values src = values(s.samples * s.src.elements(), 1), weight = values(s.weights(), 2),
                 d_dst = values(s.samples * s.dst.elements(), 3);
    const Data data{.src = src, .weight = weight, .d_dst = d_dst};
    const Expected want(s, data);
    for (const char* name : {"onednn", "dgrad-as-forward"}) {
      const ConvAlgorithm& algorithm = *find_algorithm(name);
      SCOPED_TRACE(algorithm.name);
      const auto compare = [&](Direction direction, const std::vector<double>& expected, double limit) {
        if (algorithm.refusal({.shape = s, .direction = direction})) return;
        const auto got = results_of(*make_kernel(algorithm, s, direction), s, direction, data);
        EXPECT_LT(relative_error(got.values, expected), limit) << name_of(direction);
      };
      // Values are rounded to 8 bits, after sums in float; those of d_weight stay float.
      const double length = static_cast<double>(s.samples) * static_cast<double>(s.dst_pixels());
      compare(Direction::forward, want.dst, 0x1p-8);
      compare(Direction::backward_data, want.d_src, 0x1p-8);
      compare(Direction::backward_weights, want.d_weight, (2 + 0.75 * std::sqrt(length)) * 0x1p-24);
    }
  }
}

}  // namespace
}  // namespace paceline::engine::cpu
