// Convolutions with narrow groups beside sums in double: each width of a group, odd images and channels, and
// rings that hold all rows or wrap. All instruction sets give the same bits.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "engine/cpu/conv/algorithms.h"
#include "engine/cpu/conv/kernel_runs.h"
#include "engine/cpu/conv/onednn.h"
#include "engine/cpu/kernels/grouped/grouped.h"

namespace paceline::engine::cpu {

// Defined in grouped.cc.
std::unique_ptr<WeightReader> make_grouped_reader(const ConvShape& shape, Direction direction,
                                                  const grouped::GroupedKernels& kernels);
std::unique_ptr<WgradKernel> make_grouped_wgrad(const ConvShape& shape,
                                                const grouped::GroupedKernels& kernels);

namespace {

constexpr Direction kDirections[] = {Direction::forward, Direction::backward_data,
                                     Direction::backward_weights};

struct GroupedCase {
  int channels, group;  ///< channels of a group
  int height, width, kernel, stride, padding, samples;
  bool bias = false;
};

constexpr GroupedCase kGroupedCases[] = {
    {1, 1, 1, 1, 3, 1, 1, 1},           // one number
    {5, 1, 4, 7, 3, 1, 1, 3, true},     // odd everything
    {16, 1, 8, 15, 3, 2, 1, 2},         // half a block, a strip and one
    {33, 1, 9, 8, 3, 2, 1, 2, true},    // one channel of a second block
    {40, 1, 3, 26, 5, 1, 2, 1},         // every length of strip
    {24, 1, 7, 7, 5, 2, 2, 3},          // a stride and an odd image
    {48, 1, 7, 7, 7, 1, 3, 2, true},    // as in ConvNeXt
    {32, 1, 2, 3, 7, 1, 3, 2},          // a kernel larger than the image
    {17, 1, 6, 5, 3, 3, 0, 2},          // pixels that no window reads, three phases
    {8, 1, 5, 9, 3, 4, 1, 2},           // a stride wider than the kernel: phases without taps
    {9, 1, 8, 9, 5, 3, 4, 2},           // padding nearly as wide as the kernel
    {3, 1, 1, 1, 3, 2, 1, 2},           // fewer outputs than phases
    {32, 1, 96, 96, 3, 1, 1, 1, true},  // a ring that wraps
    {20, 1, 101, 99, 5, 2, 2, 1},       // ... by two rows at a time
    {16, 1, 90, 90, 3, 4, 1, 1},        // ... with rows that nobody reads
    {2, 2, 5, 6, 3, 1, 1, 2, true},     // one group of two
    {34, 2, 6, 7, 3, 2, 1, 2},          // a group alone in its block
    {36, 4, 9, 8, 3, 1, 1, 2, true},    // as in ResNeXt
    {128, 4, 28, 28, 3, 2, 1, 1},       // a ring of four copies
    {24, 8, 7, 9, 3, 1, 1, 2},          // as in RegNet
    {40, 8, 6, 5, 5, 2, 2, 2, true},   {16, 8, 40, 60, 7, 1, 3, 1},
};

ConvShape grouped_shape(const GroupedCase& c, Storage type = Storage::f32) {
  ConvShape s =
      shape_of({c.channels, c.channels, c.height, c.width, c.kernel, c.stride, c.padding, c.samples});
  s.groups = c.channels / c.group;
  s.bias = c.bias;
  s.type = s.dst_type = type;
  return s;
}

std::string text_of(const GroupedCase& c) {
  return text_of(Case{c.channels, c.channels, c.height, c.width, c.kernel, c.stride, c.padding, c.samples}) +
         " group " + std::to_string(c.group);
}

struct GroupedValues {
  Values src, weight, d_dst, bias;
  [[nodiscard]] Data data() const { return {.src = src, .weight = weight, .d_dst = d_dst, .bias = bias}; }
};

GroupedValues values_of(const ConvShape& s) {
  const auto values = [&](std::int64_t count, std::uint64_t seed) {
    Values drawn = random_values(count, seed);
    return s.type == Storage::bf16 ? rounded_to_bf16(drawn) : drawn;
  };
  return {.src = values(s.samples * s.src.elements(), 1),
          .weight = values(s.weights(), 2),
          .d_dst = values(s.samples * s.dst.elements(), 3),
          .bias = s.bias ? random_values(s.dst.channels, 4) : Values{}};
}

/// The sums in double, group by group: each is a convolution of one group.
struct GroupedSums {
  std::vector<double> dst, d_src, d_weight, d_bias;
};
GroupedSums sums_of(const ConvShape& s, const GroupedValues& all) {
  const int group = s.src.channels / s.groups, taps = s.kernel * s.kernel;
  GroupedSums sums{.dst = std::vector<double>(all.d_dst.size()),
                   .d_src = std::vector<double>(all.src.size()),
                   .d_weight = {},
                   .d_bias = {}};
  ConvShape one = s;
  one.groups = 1;
  one.src.channels = one.dst.channels = group;
  const auto channels_of = [&](const Values& values, int first) {
    Values part;
    for (std::size_t i = static_cast<std::size_t>(first); i < values.size();
         i += static_cast<std::size_t>(s.src.channels))
      part.insert(part.end(), values.begin() + static_cast<std::ptrdiff_t>(i),
                  values.begin() + static_cast<std::ptrdiff_t>(i) + group);
    return part;
  };
  const auto put = [&](const std::vector<double>& part, int first, std::vector<double>& into) {
    for (std::size_t i = 0; i < part.size(); ++i)
      into[i / static_cast<std::size_t>(group) * static_cast<std::size_t>(s.src.channels) +
           static_cast<std::size_t>(first) + i % static_cast<std::size_t>(group)] = part[i];
  };
  for (int first = 0; first < s.src.channels; first += group) {
    const auto weights = std::span(all.weight)
                             .subspan(static_cast<std::size_t>(first * group * taps),
                                      static_cast<std::size_t>(group * group * taps));
    const Values src = channels_of(all.src, first), d_dst = channels_of(all.d_dst, first);
    const Values bias = s.bias ? channels_of(all.bias, first) : Values{};
    const Expected want(one, {.src = src, .weight = weights, .d_dst = d_dst, .bias = bias});
    put(want.dst, first, sums.dst);
    put(want.d_src, first, sums.d_src);
    sums.d_weight.insert(sums.d_weight.end(), want.d_weight.begin(), want.d_weight.end());
    sums.d_bias.insert(sums.d_bias.end(), want.d_bias.begin(), want.d_bias.end());
  }
  return sums;
}

Results run(const ConvShape& s, Direction direction, const GroupedValues& values,
            const grouped::GroupedKernels& kernels) {
  if (direction == Direction::backward_weights)
    return results_of(*make_grouped_wgrad(s, kernels), s, direction, values.data());
  return results_of(*make_grouped_reader(s, direction, kernels), s, direction, values.data());
}

void expect_sums(const ConvShape& s, const grouped::GroupedKernels& kernels, double rounding) {
  const GroupedValues values = values_of(s);
  const GroupedSums want = sums_of(s, values);
  const auto expect = [&](Direction direction, const std::vector<double>& expected, std::int64_t length,
                          double written) {
    const Results got = run(s, direction, values, kernels);
    EXPECT_LT(relative_error(got.values, expected),
              (2 + 0.75 * std::sqrt(static_cast<double>(length))) * 0x1p-24 + written)
        << name_of(direction);
    if (direction == Direction::backward_weights && s.bias) {
      EXPECT_LT(relative_error(got.d_bias, want.d_bias),
                (2 + 0.75 * std::sqrt(static_cast<double>(length))) * 0x1p-24);
    }
  };
  const std::int64_t products = s.kernel * s.kernel * s.src.channels / s.groups;
  expect(Direction::forward, want.dst, products, rounding);
  expect(Direction::backward_data, want.d_src, products, rounding);
  expect(Direction::backward_weights, want.d_weight, s.samples * s.dst_pixels(), 0);
}

TEST(Grouped, ComputesLikeSumsInDouble) {
  if (grouped::kernels_here().empty()) GTEST_SKIP() << "needs AVX2";
  for (const GroupedCase& c : kGroupedCases) {
    SCOPED_TRACE(text_of(c));
    for (const auto* kernels : grouped::kernels_here()) {
      SCOPED_TRACE(name_of(kernels->isa));
      expect_sums(grouped_shape(c), *kernels, 0);
      expect_sums(grouped_shape(c, Storage::bf16), *kernels, 0x1p-8);  // half of the last bit
    }
  }
}

TEST(Grouped, GivesTheSameBitsOnEachSet) {
  if (grouped::kernels_here().size() < 2) GTEST_SKIP() << "needs AVX-512";
  for (const GroupedCase& c : kGroupedCases)
    for (const Storage type : {Storage::f32, Storage::bf16}) {
      SCOPED_TRACE(text_of(c));
      const ConvShape s = grouped_shape(c, type);
      const GroupedValues values = values_of(s);
      for (const Direction direction : kDirections) {
        const Results first = run(s, direction, values, *grouped::kernels_here().front()),
                      last = run(s, direction, values, *grouped::kernels_here().back());
        EXPECT_EQ(first.values, last.values) << name_of(direction);
        if (direction != Direction::backward_weights) continue;
        EXPECT_EQ(first.d_bias, last.d_bias);
      }
    }
}

TEST(Grouped, NaNReachesItsWindowsAlone) {
  if (grouped::kernels_here().empty()) GTEST_SKIP() << "needs AVX2";
  const ConvShape s = grouped_shape({4, 1, 5, 5, 3, 1, 1, 1}, Storage::bf16);
  GroupedValues values = values_of(s);
  values.src[(2 * 5 + 2) * 4 + 1] = std::nanf("");
  for (const auto* kernels : grouped::kernels_here()) {
    const Results got = run(s, Direction::forward, values, *kernels);
    for (int y = 0; y < 5; ++y)
      for (int x = 0; x < 5; ++x)
        for (int c = 0; c < 4; ++c)
          EXPECT_EQ(std::isnan(got.values[static_cast<std::size_t>((y * 5 + x) * 4 + c)]),
                    c == 1 && std::abs(y - 2) <= 1 && std::abs(x - 2) <= 1);
  }
}

TEST(Grouped, IsPreferredWhereItWasFaster) {
  if (grouped::kernels_here().empty()) GTEST_SKIP() << "needs AVX2";
  const auto usual = [](const GroupedCase& c, Direction direction, Storage type) {
    return usual_algorithm({.shape = grouped_shape(c, type), .direction = direction}).name;
  };
  const bool has_units = bf16_products_here() == Bf16Products::in_hardware;
  constexpr GroupedCase kSmall{768, 1, 7, 7, 7, 1, 3, 8}, kLarge{96, 1, 56, 56, 7, 1, 3, 8},
      kStrided{672, 1, 14, 14, 5, 2, 2, 8}, kThree{144, 1, 56, 56, 3, 1, 1, 8},
      kGroups{128, 4, 56, 56, 3, 1, 1, 8};
  for (const Storage type : {Storage::f32, Storage::bf16}) {
    const auto if_computed_in_float = [&](const char* name) {
      return type == Storage::bf16 && !has_units ? "grouped" : name;
    };
    EXPECT_EQ(usual(kSmall, Direction::forward, type), if_computed_in_float("onednn"));
    EXPECT_EQ(usual(kThree, Direction::forward, type), if_computed_in_float("onednn"));
    EXPECT_EQ(usual(kStrided, Direction::backward_data, type),
              if_computed_in_float(type == Storage::bf16 ? "onednn" : "grouped"));
    EXPECT_EQ(usual(kLarge, Direction::forward, type), "grouped");
    EXPECT_EQ(usual(kSmall, Direction::backward_data, type), "grouped");
    EXPECT_EQ(usual(kSmall, Direction::backward_weights, type), "grouped");
    EXPECT_EQ(usual(kThree, Direction::backward_weights, type), "grouped");
    EXPECT_EQ(usual(kGroups, Direction::forward, type), "grouped");
  }
}

TEST(Grouped, PacksDepthwiseWeightsOnce) {
  if (grouped::kernels_here().empty()) GTEST_SKIP() << "needs AVX2";
  const auto& kernels = *grouped::kernels_here().back();
  for (const int group : {1, 4}) {
    const ConvShape s = grouped_shape({20, group, 6, 6, 3, 1, 1, 2});
    const auto forward = make_grouped_reader(s, Direction::forward, kernels),
               backward = make_grouped_reader(s, Direction::backward_data, kernels);
    const Values weight = random_values(s.weights(), 2);
    auto one = poisoned(forward->packed_bytes()), two = poisoned(backward->packed_bytes());
    forward->pack(weight.data(), one.data());
    backward->pack(weight.data(), two.data());
    const bool are_equal =
        std::memcmp(one.data(), two.data(), static_cast<std::size_t>(forward->packed_bytes())) == 0;
    EXPECT_EQ(are_equal, group == 1);
    EXPECT_EQ(backward->packs_like(*forward), group == 1);
  }
}

TEST(Grouped, RefusesWhatItDoesNotCompute) {
  const ConvAlgorithm& row = *find_algorithm("grouped");
  const auto refusal = [&](const ConvShape& s) { return row.refusal({.shape = s}).value_or(""); };
  ConvShape s = grouped_shape({32, 1, 8, 8, 3, 1, 1, 4});
  EXPECT_EQ(refusal(s), grouped::kernels_here().empty() ? "needs AVX2" : "");
  s.padding = 3;
  EXPECT_EQ(refusal(s), "needs padding that is smaller than the kernel");
  s.kernel = 2;
  EXPECT_EQ(refusal(s), "has kernels of 3x3, 5x5 and 7x7");
  s.groups = 2;
  EXPECT_EQ(refusal(s), "needs groups of 1, 2, 4 or 8 channels, as many out as in");
  s.groups = 32;
  s.dst.channels = 64;
  EXPECT_EQ(refusal(s), "needs groups of 1, 2, 4 or 8 channels, as many out as in");
  s.dst_type = Storage::bf16;
  EXPECT_EQ(refusal(s), "reads and writes one precision");
  s.groups = 1;
  EXPECT_EQ(refusal(s), "is for convolutions with groups");
}

}  // namespace
}  // namespace paceline::engine::cpu
