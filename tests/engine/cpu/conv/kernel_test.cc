// Every way to compute a convolution in fp32, alone, against sums in double, over the shapes that break
// kernels.

#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "engine/cpu/conv/algorithms.h"
#include "engine/cpu/conv/kernel_runs.h"
#include "engine/cpu/conv/onednn.h"
#include "engine/cpu/conv/winograd_kernel.h"
#include "engine/cpu/conv/winograd_wgrad.h"

namespace paceline::engine::cpu {
namespace {

constexpr Case kKernelCases[] = {
    {16, 16, 4, 4, 3, 1, 1, 1},    {16, 48, 5, 7, 3, 1, 1, 3},   {48, 16, 8, 8, 3, 1, 1, 2},
    {32, 64, 1, 1, 3, 1, 1, 5},    {64, 32, 13, 6, 3, 1, 1, 1},  {64, 64, 32, 32, 3, 1, 1, 1},
    {16, 32, 6, 6, 3, 1, 0, 7},    {32, 16, 3, 3, 3, 1, 0, 33},  {16, 16, 5, 5, 3, 1, 2, 4},
    {144, 160, 4, 4, 3, 1, 1, 16}, {32, 272, 2, 9, 3, 1, 1, 2},  {3, 16, 9, 9, 3, 1, 1, 2},
    {16, 32, 9, 9, 3, 2, 1, 4},    {24, 40, 7, 7, 1, 2, 0, 3},   {20, 12, 6, 5, 5, 1, 2, 2},
    {32, 48, 8, 8, 3, 2, 1, 5},    {64, 16, 7, 6, 1, 2, 0, 3},   {48, 32, 5, 5, 1, 1, 0, 33},
    {16, 32, 11, 10, 7, 2, 3, 2},  {16, 16, 2, 2, 3, 2, 1, 16},  {256, 288, 4, 4, 3, 2, 1, 9},
    {16, 16, 7, 7, 2, 3, 0, 7},    {32, 16, 9, 8, 3, 3, 1, 2},   {512, 32, 4, 4, 3, 1, 1, 33},
    {32, 512, 4, 4, 3, 1, 1, 7},   {32, 48, 17, 10, 3, 2, 1, 3}, {64, 64, 7, 31, 3, 2, 1, 13},
};

std::unique_ptr<ConvKernel> make_winograd(const ConvShape& shape, Direction direction,
                                          const winograd::WinogradKernels& kernels) {
  if (direction == Direction::backward_weights) return make_winograd_wgrad(shape, kernels);
  return make_winograd_reader(shape, direction, kernels);
}

TEST(ConvKernel, ComputesLikeSumsInDoubleByEveryAlgorithm) {
  std::map<std::string, int> computed;
  for (const Case& c : kKernelCases) {
    const ConvShape s = shape_of(c);
    SCOPED_TRACE(text_of(c));
    const Values src = random_values(s.samples * s.src.elements(), 1), weight = random_values(s.weights(), 2),
                 d_dst = random_values(s.samples * s.dst.elements(), 3);
    const Expected want(s, {.src = src, .weight = weight, .d_dst = d_dst});
    for (const ConvAlgorithm& algorithm : conv_algorithms()) {
      SCOPED_TRACE(algorithm.name);
      // Rounding errors of a sum grow like the root of its length, in units of 2^-24: found 0.3 of the root
      // for the direct forms, to 0.43 for Winograd with stride 2, 0.7 with stride 1, whose transforms have
      // about 8 units of their own.
      const auto limit = [&](std::int64_t length) {
        const double root = std::sqrt(static_cast<double>(length));
        return (algorithm.name == "winograd" && s.stride == 1 ? 12 + 1.5 * root : 2 + 0.75 * root) * 0x1p-24;
      };
      const auto compare = [&](Direction direction, const std::vector<double>& expected,
                               std::int64_t length) {
        if (algorithm.refusal({.shape = s, .direction = direction})) return;
        ++computed[algorithm.name];
        const auto compare_kernel = [&](const ConvKernel& kernel) {
          const auto got = results_of(kernel, s, direction, {.src = src, .weight = weight, .d_dst = d_dst});
          EXPECT_LT(relative_error(got.values, expected), limit(length)) << name_of(direction);
        };
        if (algorithm.name != "winograd") return compare_kernel(*make_kernel(algorithm, s, direction));
        for (const auto* table : winograd::kernels_here())
          compare_kernel(*make_winograd(s, direction, *table));
      };
      const int taps = s.kernel * s.kernel;
      compare(Direction::forward, want.dst, taps * s.src.channels);
      compare(Direction::backward_data, want.d_src, taps * s.dst.channels);
      compare(Direction::backward_weights, want.d_weight, s.samples * s.dst_pixels());
    }
  }
  EXPECT_EQ(computed["winograd"], winograd::kernels_here().empty() ? 0 : 3 * (13 + 6));
  EXPECT_EQ(computed["dgrad-as-forward"],
            std::ranges::count_if(kKernelCases, [](const Case& c) { return shape_of(c).stride == 1; }));
}

/// oneDNN 2.6.3 computed the gradient of taps that read padding alone from what lay in its scratchpad, on
/// images narrower than the stride.
TEST(ConvKernel, ByOnednnMultipliesBf16OnNarrowImages) {
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

/// The same sums of bf16 numbers: d_weight is as exact as in fp32, values are rounded once more, to 8 bits.
/// Float copies are not, but multiplied by rounded weights all the same.
TEST(ConvKernel, ByWinogradMultipliesBf16StoredOrCopied) {
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

TEST(ConvKernel, ByWinogradAddsABiasAndSumsItsGradient) {
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

TEST(ConvKernel, RefusesWhatItCannotComputeAndSaysWhy) {
  ConvShape s = shape_of({16, 16, 8, 8, 3, 1, 1, 4});
  EXPECT_FALSE(find_algorithm("gemm-per-tap")->refusal({.shape = s}));
  EXPECT_FALSE(find_algorithm("onednn")->refusal({.shape = s}));
  s.bias = true;
  EXPECT_FALSE(find_algorithm("winograd")->refusal({.shape = s}));
  EXPECT_EQ(find_algorithm("gemm-per-tap")->refusal({.shape = s}), "adds no bias");
  s.bias = false;
  s.stride = 3;
  EXPECT_EQ(find_algorithm("winograd")->refusal({.shape = s}), "is for 3x3 convolutions with stride 1 or 2");
  s.stride = 2;
  EXPECT_FALSE(find_algorithm("winograd")->refusal({.shape = s}));
  s.padding = 0;
  EXPECT_EQ(find_algorithm("winograd")->refusal({.shape = s}), "has 1 pixel of padding with stride 2");
  s.padding = 1;
  s.stride = 1;
  s.src.channels = 24;
  EXPECT_EQ(find_algorithm("winograd")->refusal({.shape = s}), "wants multiples of 16 channels");
  s.src.channels = 16;
  s.type = Storage::bf16;
  EXPECT_EQ(find_algorithm("winograd")->refusal({.shape = s}), "reads and writes one precision");
  EXPECT_EQ(find_algorithm("gemm-per-tap")->refusal({.shape = s}), "is for fp32");
  s.dst_type = Storage::bf16;
  EXPECT_FALSE(find_algorithm("winograd")->refusal({.shape = s}));
  EXPECT_EQ(find_algorithm("dgrad-as-forward")->refusal({.shape = s}), "is for backward data");
  const auto onednn_in_bf16 = bf16_products_here() == Bf16Products::none
                                  ? std::optional<std::string>("multiplies bf16 from AVX-512 on")
                                  : std::nullopt;
  EXPECT_EQ(find_algorithm("dgrad-as-forward")->refusal({.shape = s, .direction = Direction::backward_data}),
            onednn_in_bf16);
  EXPECT_EQ(find_algorithm("onednn")->refusal({.shape = s}), onednn_in_bf16);
  s.padding = 3;
  EXPECT_EQ(find_algorithm("dgrad-as-forward")->refusal({.shape = s, .direction = Direction::backward_data}),
            "wants less padding than its kernel is wide");
  s.stride = 2;
  EXPECT_EQ(find_algorithm("dgrad-as-forward")->refusal({.shape = s, .direction = Direction::backward_data}),
            "is for convolutions with stride 1");
}

TEST(ConvKernel, UsesTheAlgorithmThatTheShapeWants) {
  const auto usual = [](const Case& c) { return usual_algorithm({.shape = shape_of(c)}).name; };
  if (!winograd::kernels_here().empty()) {
    EXPECT_EQ(usual({64, 64, 32, 32, 3, 1, 1, 128}), "winograd");
    EXPECT_EQ(usual({256, 256, 8, 8, 3, 1, 1, 128}), "winograd");
    EXPECT_EQ(usual({512, 512, 4, 4, 3, 1, 1, 32}), "winograd");
    EXPECT_EQ(usual({64, 128, 32, 32, 3, 2, 1, 128}), "winograd");
    EXPECT_EQ(usual({256, 512, 8, 8, 3, 2, 1, 128}), "winograd");
  } else {
    EXPECT_EQ(usual({512, 512, 4, 4, 3, 1, 1, 32}), "gemm-per-tap");
    EXPECT_EQ(usual({64, 128, 32, 32, 3, 2, 1, 128}), "onednn");
    EXPECT_EQ(usual({256, 512, 8, 8, 3, 2, 1, 128}), "gemm-per-tap");
  }
  EXPECT_EQ(usual({512, 512, 3, 3, 3, 1, 1, 128}), "gemm-per-tap");
  EXPECT_EQ(usual({512, 512, 4, 4, 3, 1, 1, 8}), "onednn");
  EXPECT_EQ(usual({64, 128, 32, 32, 1, 2, 0, 128}), "onednn");
  EXPECT_EQ(usual({128, 256, 28, 28, 3, 2, 1, 16}), "onednn");  // 16x16 for 14x14
  if (!winograd::kernels_here().empty()) {
    EXPECT_EQ(usual({128, 256, 30, 30, 3, 2, 1, 16}), "winograd");  // 16x16 for 15x15
    EXPECT_EQ(usual({128, 256, 16, 16, 3, 2, 1, 8}), "winograd");
    EXPECT_EQ(usual({64, 128, 32, 32, 3, 2, 1, 4}), "winograd");
    EXPECT_EQ(usual({64, 128, 32, 32, 3, 2, 1, 3}), "onednn");  // 48 tiles
  }
  EXPECT_EQ(usual({3, 64, 32, 32, 3, 1, 1, 128}), "onednn");
}

TEST(ConvKernel, CutsABatchForWinogradIntoAnEvenNumberOfEqualPieces) {
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

TEST(ConvKernel, CutsGradientsOfManyWeightsByTilesIntoFewerPieces) {
  const auto samples = [](const char* algorithm, int channels, int size, int batch) {
    return find_algorithm(algorithm)->chunk(shape_of({channels, channels, size, size, 3, 1, 1, batch}),
                                            Direction::backward_weights);
  };
  EXPECT_EQ(samples("amx-wgrad-pixel-k", 64, 32, 128), 32);
  EXPECT_EQ(samples("amx-wgrad-pixel-k", 256, 8, 128), 64);
  EXPECT_EQ(samples("amx-wgrad-pixel-k", 256, 8, 32), 32);
  EXPECT_EQ(samples("amx-wgrad-pixel-k", 64, 8, 128), 32);     // few weights
  EXPECT_EQ(samples("amx-wgrad-pixel-k", 128, 16, 512), 128);  // four copies at most
  EXPECT_EQ(samples("amx-wgrad-pixel-k", 64, 32, 512), 64);
  EXPECT_EQ(samples("onednn", 256, 8, 128), 32);
}

}  // namespace
}  // namespace paceline::engine::cpu
