// Backward data as a forward convolution of turned weights: any kernel, even ones too, and any padding below
// it.

#include <gtest/gtest.h>

#include <cmath>

#include "engine/cpu/conv/algorithms.h"
#include "engine/cpu/conv/kernel_runs.h"
#include "engine/cpu/conv/onednn.h"

namespace paceline::engine::cpu {
namespace {

constexpr Direction kBackwardData = Direction::backward_data;
const ConvAlgorithm& dgrad_as_forward() { return *find_algorithm("dgrad-as-forward"); }

constexpr Case kTurnedCases[] = {
    {1, 1, 1, 1, 1, 1, 0, 1},    {3, 5, 4, 7, 3, 1, 1, 3},  {16, 24, 5, 7, 3, 1, 0, 2},
    {16, 16, 5, 5, 3, 1, 2, 4},  {7, 9, 6, 4, 2, 1, 0, 3},  {7, 9, 6, 4, 2, 1, 1, 3},
    {20, 12, 6, 5, 5, 1, 2, 2},  {5, 33, 9, 8, 4, 1, 3, 2}, {40, 33, 1, 1, 3, 1, 1, 7},
    {17, 64, 13, 6, 1, 1, 0, 5},
};

TEST(DgradAsForward, ComputesLikeSumsInDouble) {
  for (const Storage storage : {Storage::f32, Storage::bf16})
    for (const Case& c : kTurnedCases) {
      SCOPED_TRACE(text_of(c) + (storage == Storage::bf16 ? " in bf16" : ""));
      ConvShape s = shape_of(c);
      s.type = s.dst_type = storage;
      if (refusal_of_onednn(s)) continue;
      ASSERT_FALSE(dgrad_as_forward().refusal({.shape = s, .direction = kBackwardData}));
      const auto values = [&](std::int64_t count, std::uint64_t seed) {
        return storage == Storage::bf16 ? rounded_to_bf16(random_values(count, seed))
                                        : random_values(count, seed);
      };
      const Values src = values(s.samples * s.src.elements(), 1), weight = values(s.weights(), 2),
                   d_dst = values(s.samples * s.dst.elements(), 3);
      const Data data{.src = src, .weight = weight, .d_dst = d_dst};
      const Expected want(s, data, {.dst = false, .d_weight = false});
      const auto got = results_of(*make_kernel(dgrad_as_forward(), s, kBackwardData), s, kBackwardData, data);
      const double length = static_cast<double>(s.kernel) * s.kernel * s.dst.channels;
      EXPECT_LT(relative_error(got.values, want.d_src),
                (storage == Storage::bf16 ? 0x1p-8 : 0) + (2 + 0.75 * std::sqrt(length)) * 0x1p-24);
    }
}

/// The last chunk of a batch may have fewer samples, and reads the weights that the first one packed.
TEST(DgradAsForward, ReadsWeightsThatAKernelOfOtherSamplesPacked) {
  const Case whole{40, 33, 5, 5, 3, 1, 1, 33};
  Case last = whole;
  last.samples = 2;
  const ConvShape s = shape_of(last);
  const Values src = random_values(s.samples * s.src.elements(), 1), weight = random_values(s.weights(), 2),
               d_dst = random_values(s.samples * s.dst.elements(), 3);
  const Data data{.src = src, .weight = weight, .d_dst = d_dst};
  const Expected want(s, data, {.dst = false, .d_weight = false});
  const auto first = dgrad_as_forward().make_reader(shape_of(whole), kBackwardData, nullptr);
  const auto kernel = dgrad_as_forward().make_reader(s, kBackwardData, first.get());
  EXPECT_EQ(kernel->packed_bytes(), first->packed_bytes());
  EXPECT_LT(relative_error(results_of(*kernel, s, kBackwardData, data, first.get()).values, want.d_src),
            (2 + 0.75 * std::sqrt(9.0 * 33)) * 0x1p-24);
}

TEST(DgradAsForward, RefusesOtherDirectionsStridesAndPaddingAsWideAsTheKernel) {
  const auto refusal = [](const Case& c, Direction direction = kBackwardData) {
    return dgrad_as_forward().refusal({.shape = shape_of(c), .direction = direction}).value_or("");
  };
  EXPECT_EQ(refusal({16, 16, 8, 8, 3, 1, 2, 4}), "");
  EXPECT_EQ(refusal({16, 16, 8, 8, 3, 1, 3, 4}), "needs padding that is smaller than the kernel");
  EXPECT_EQ(refusal({16, 16, 8, 8, 3, 2, 1, 4}), "is for convolutions with stride 1");
  EXPECT_EQ(refusal({64, 10, 1, 1, 0, 1, 0, 4}), "is for convolutions with stride 1");
  EXPECT_EQ(refusal({16, 16, 8, 8, 3, 1, 1, 4}, Direction::forward), "is for backward data");
  EXPECT_EQ(refusal({16, 16, 8, 8, 3, 1, 1, 4}, Direction::backward_weights), "is for backward data");
}

}  // namespace
}  // namespace paceline::engine::cpu
