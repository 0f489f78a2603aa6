// One matrix product for each pixel and tap, at the edges of what it is made of: taps that read padding
// alone, pixels that no window reads, blocks of channels and the rest.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "engine/cpu/conv/algorithms.h"
#include "engine/cpu/conv/kernel_runs.h"

namespace paceline::engine::cpu {
namespace {

const ConvAlgorithm& gemm_per_tap() { return *find_algorithm("gemm-per-tap"); }

constexpr Case kTapCases[] = {
    {1, 1, 1, 1, 1, 1, 0, 1},    // one number
    {3, 5, 4, 7, 3, 1, 1, 3},    // odd everything
    {128, 7, 3, 3, 3, 1, 1, 5},  // one block of channels
    {129, 6, 2, 3, 3, 1, 1, 4},  // ... and one channel of another
    {300, 4, 2, 2, 3, 1, 1, 2},  // several and a rest
    {5, 3, 1, 1, 3, 1, 1, 6},    // eight of nine taps read padding alone
    {4, 6, 3, 2, 3, 1, 2, 3},    // padding nearly as wide as the kernel
    {6, 4, 7, 5, 2, 3, 0, 4},    // input pixels that no window reads
    {4, 4, 5, 6, 1, 2, 0, 2},    // likewise, of one tap
    {7, 2, 2, 9, 5, 2, 2, 3},    // a kernel taller than the image
    {2, 3, 4, 4, 3, 4, 1, 2},    // a stride wider than the kernel
};

TEST(GemmPerTap, ComputesLikeSumsInDouble) {
  for (const Case& c : kTapCases) {
    SCOPED_TRACE(text_of(c));
    const ConvShape s = shape_of(c);
    const Values src = random_values(s.samples * s.src.elements(), 1), weight = random_values(s.weights(), 2),
                 d_dst = random_values(s.samples * s.dst.elements(), 3);
    const Data data{.src = src, .weight = weight, .d_dst = d_dst};
    const Expected want(s, data);
    const auto expect = [&](Direction direction, const std::vector<double>& expected, std::int64_t length) {
      ASSERT_FALSE(gemm_per_tap().refusal({.shape = s, .direction = direction}));
      const auto got = results_of(*make_kernel(gemm_per_tap(), s, direction), s, direction, data);
      EXPECT_LT(relative_error(got.values, expected),
                (2 + 0.75 * std::sqrt(static_cast<double>(length))) * 0x1p-24)
          << name_of(direction);
    };
    const int taps = s.kernel * s.kernel;
    expect(Direction::forward, want.dst, taps * s.src.channels);
    expect(Direction::backward_data, want.d_src, taps * s.dst.channels);
    expect(Direction::backward_weights, want.d_weight, s.samples * s.dst_pixels());
  }
}

TEST(GemmPerTap, ForwardAndBackwardReadOnePackedCopy) {
  const ConvShape s = shape_of({20, 12, 4, 4, 3, 1, 1, 3});
  const auto forward = gemm_per_tap().make_reader(s, Direction::forward, nullptr),
             backward = gemm_per_tap().make_reader(s, Direction::backward_data, nullptr);
  EXPECT_TRUE(forward->packs_like(*backward));
  EXPECT_TRUE(backward->packs_like(*forward));
  const Values weight = random_values(s.weights(), 2);
  auto one = poisoned(forward->packed_bytes()), two = poisoned(backward->packed_bytes());
  ASSERT_EQ(forward->packed_bytes(), static_cast<std::int64_t>(weight.size() * sizeof(float)));
  forward->pack(weight.data(), one.data());
  backward->pack(weight.data(), two.data());
  EXPECT_EQ(std::memcmp(one.data(), two.data(), weight.size() * sizeof(float)), 0);
  const auto onednn = find_algorithm("onednn")->make_reader(s, Direction::forward, nullptr);
  EXPECT_FALSE(forward->packs_like(*onednn));
}

TEST(GemmPerTap, HasAPartForEachPixelOrTapAndBlock) {
  const ConvShape s = shape_of({129, 12, 5, 4, 3, 2, 1, 3});
  const auto parts = [&](Direction direction) { return make_kernel(gemm_per_tap(), s, direction)->parts(); };
  EXPECT_EQ(parts(Direction::forward), 3 * 2);
  EXPECT_EQ(parts(Direction::backward_data), 5 * 4);
  EXPECT_EQ(parts(Direction::backward_weights), 9 * 2);
  EXPECT_EQ(gemm_per_tap().chunk(shape_of({64, 64, 8, 8, 3, 1, 1, 1000}), Direction::forward), 1000)
      << "the batch is not cut: parts share it";
}

TEST(GemmPerTap, RefusesWhatItDoesNotComputeAndLeavesLargeImagesToOthers) {
  ConvShape s = shape_of({16, 16, 8, 8, 3, 1, 1, 4});
  EXPECT_FALSE(gemm_per_tap().refusal({.shape = s}));
  s.bias = true;
  EXPECT_EQ(gemm_per_tap().refusal({.shape = s}), "adds no bias");
  s.bias = false;
  s.dst_type = Storage::bf16;
  EXPECT_EQ(gemm_per_tap().refusal({.shape = s}), "is for fp32");
  EXPECT_EQ(gemm_per_tap().refusal({.shape = shape_of({64, 10, 1, 1, 0, 1, 0, 33})}), "is for convolutions");
  const auto is_hopeless = [](const Case& c) { return gemm_per_tap().is_hopeless(shape_of(c)); };
  EXPECT_FALSE(is_hopeless({512, 512, 4, 4, 3, 1, 1, 32}));
  EXPECT_TRUE(is_hopeless({512, 512, 8, 8, 3, 1, 1, 32})) << "64 pixels";
  EXPECT_TRUE(is_hopeless({64, 512, 4, 4, 3, 1, 1, 32})) << "64 channels";
}

}  // namespace
}  // namespace paceline::engine::cpu
