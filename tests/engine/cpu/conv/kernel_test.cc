// Every way to compute a convolution in fp32, alone, against sums in double, over the shapes that break
// kernels.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "engine/cpu/conv/algorithms.h"
#include "engine/cpu/conv/kernel_runs.h"
#include "engine/cpu/conv/onednn.h"
#include "engine/cpu/conv/winograd_runs.h"

namespace paceline::engine::cpu {
namespace {

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
  ConvShape uneven = s;
  uneven.uneven = {.kernel = {1, 3}, .padding = {0, 1}};
  for (const ConvAlgorithm& own : conv_algorithms().first(conv_algorithms().size() - 1))
    EXPECT_EQ(own.refusal({.shape = uneven}), "has square kernels without dilation") << own.name;
  EXPECT_FALSE(find_algorithm("onednn")->refusal({.shape = uneven}));
  EXPECT_THAT(key_of({.shape = s}), testing::HasSubstr(", kernel 3 stride 3 padding 1, fp32"));
  EXPECT_THAT(key_of({.shape = uneven}), testing::HasSubstr(", kernel 1x3 stride 1 padding 0x1, fp32"));
  s.stride = 2;
  EXPECT_FALSE(find_algorithm("winograd")->refusal({.shape = s}));
  s.padding = 0;
  EXPECT_EQ(find_algorithm("winograd")->refusal({.shape = s}), "needs 1 pixel of padding with stride 2");
  s.padding = 1;
  s.stride = 1;
  s.src.channels = 24;
  EXPECT_EQ(find_algorithm("winograd")->refusal({.shape = s}), "needs multiples of 16 channels");
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
            "needs padding that is smaller than the kernel");
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
