// Our own kernels alone, on every instruction set that the machine has, against plain loops.

#include "engine/cpu/kernels/kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/rng.h"
#include "engine/dropout_mask.h"
#include "engine/reference/ops.h"

namespace paceline::engine::cpu {
namespace {

constexpr int kCounts[] = {0, 1, 3, 15, 16, 17, 31, 32, 33, 64, 100, 1000};

std::vector<float> random_values(std::size_t count, std::uint64_t seed, float scale = 1) {
  base::Rng rng(seed, base::Purpose::test);
  std::vector<float> values(count);
  for (float& value : values) value = scale * rng.normal();
  return values;
}

TEST(Kernels, RoundToBf16AsTheBaseFunctionDoes) {
  std::vector<float> values = random_values(1000, 1);
  for (const float special :
       {0.0f, -0.0f, 1.00390625f, 1.01171875f, 3.4e38f, 1e-40f, -1e-40f, INFINITY, -INFINITY, NAN})
    values.push_back(special);
  values.push_back(std::bit_cast<float>(0x7f800001u));  // a NaN whose upper half alone would be infinity
  for (const Isa isa : isas_here())
    for (std::size_t count = 0; count <= values.size(); count += 7) {
      std::vector<base::BFloat16> got(values.size() + 1, base::BFloat16{0x1234});
      kernels_for(isa).bf16.from_float(values.data(), got.data(), false, static_cast<std::int64_t>(count));
      for (std::size_t i = 0; i < count; ++i) {
        // AVX512-BF16's instruction takes denormals for zero.
        const bool is_zero = isa == Isa::avx512_bf16 && std::fpclassify(values[i]) == FP_SUBNORMAL;
        const float value = is_zero ? std::copysign(0.0f, values[i]) : values[i];
        EXPECT_EQ(got[i].bits, base::to_bf16(value).bits) << name_of(isa) << ": " << values[i];
      }
      EXPECT_EQ(got[count].bits, 0x1234) << "nothing is written behind the end";
      std::vector<float> back(count);
      kernels_for(isa).bf16.to_float(got.data(), back.data(), static_cast<std::int64_t>(count));
      for (std::size_t i = 0; i < count; ++i)
        EXPECT_EQ(std::bit_cast<std::uint32_t>(back[i]),
                  std::bit_cast<std::uint32_t>(base::to_float(got[i])));
    }
}

TEST(Kernels, DrawTheDropoutMaskThatAllEnginesShare) {
  for (const Isa isa : isas_here())
    for (const int count : kCounts) {
      const DropoutMask mask(7, (std::uint64_t{3} << 32) + 5, 1234, 9, 0.3);
      std::vector<std::uint8_t> keep(static_cast<std::size_t>(count) + 1, 77);
      kernels_for(isa).dropout_mask(mask.counter().data(), mask.key().data(), mask.threshold(), keep.data(),
                                    count);
      mask.for_each(count, [&](std::int64_t i, bool kept) {
        EXPECT_EQ(keep[static_cast<std::size_t>(i)], kept ? 1 : 0) << name_of(isa) << " element " << i;
      });
      EXPECT_EQ(keep.back(), 77);
    }
}

TEST(Kernels, ComputeGeluToFloatAccuracyAlsoInTheTail) {
  std::vector<float> x;
  for (float v = -14; v < 14; v += 0.037f) x.push_back(v);
  x.insert(x.end(), {0.0f, -0.0f, 1e-30f, -1e-30f, 100.0f, -100.0f});
  for (const Isa isa : isas_here()) {
    std::vector<float> y(x.size()), d(x.size()), ones(x.size(), 1.0f);
    const auto count = static_cast<std::int64_t>(x.size());
    kernels_for(isa).f32.gelu(x.data(), y.data(), count);
    kernels_for(isa).f32.gelu_backward(x.data(), ones.data(), d.data(), count);
    for (std::size_t i = 0; i < x.size(); ++i) {
      const double v = static_cast<double>(x[i]);
      const double below = 0.5 * std::erfc(-v / std::sqrt(2.0));
      const double slope = below + v * std::exp(-0.5 * v * v) / std::sqrt(2 * M_PI);
      // The rational approximation is good to 1.2e-7; far out the exponent's own rounding grows with x^2.
      const double relative = 4e-7 + 1e-7 * v * v;
      EXPECT_NEAR(static_cast<double>(y[i]), v * below, relative * std::abs(v * below) + 1e-37) << v;
      EXPECT_NEAR(static_cast<double>(d[i]), slope, 1e-6 + relative * std::abs(slope)) << v;
    }
  }
}

TEST(Kernels, ComputeActivationsToFloatAccuracy) {
  std::vector<float> x, kept, ones;
  for (float v = -20; v < 20; v += 0.0317f) x.push_back(v);
  x.insert(x.end(), {0.0f, -0.0f, 1e-4f, -1e-4f, 1e-30f, 3.0f, -3.0f, 6.0f, 0.6249f, 0.6251f, 87.0f, -87.0f});
  ones.assign(x.size(), 1.0f);
  const auto count = static_cast<std::int64_t>(x.size());
  const std::vector<double> wide(x.begin(), x.end()), wide_ones(x.size(), 1.0);
  const reference::OpShapes shapes{
      .batch = 1, .src = {static_cast<int>(count)}, .dst = {static_cast<int>(count)}};
  for (const Isa isa : isas_here()) {
    const TypedKernels& f32 = kernels_for(isa).f32;
    const auto expect_near = [&](const std::vector<float>& got, const std::vector<double>& want,
                                 const char* op) {
      for (std::size_t i = 0; i < x.size(); ++i)
        EXPECT_NEAR(static_cast<double>(got[i]), want[i], 5e-7 * std::abs(want[i]) + 1e-37)
            << name_of(isa) << " " << op << " " << x[i];
    };
    std::vector<float> y(x.size()), d(x.size());
    std::vector<double> value(x.size()), slope(x.size());
#define PACELINE_EXPECT(Op, name)                                               \
  f32.name(x.data(), y.data(), count);                                          \
  reference::elementwise_forward<graph::Op>(shapes, wide.data(), value.data()); \
  if (std::string_view(#name) != "gelu") expect_near(y, value, #name);
    PACELINE_ELEMENTWISE_OPS(PACELINE_EXPECT)
#undef PACELINE_EXPECT
    // The gradient of what is kept: x itself, taken as an output where the rule keeps the output.
#define PACELINE_EXPECT(Op, name)                                                                  \
  f32.name##_backward(x.data(), ones.data(), d.data(), count);                                     \
  std::ranges::fill(slope, 0.0);                                                                   \
  reference::elementwise_backward<graph::Op>(shapes, wide.data(), wide_ones.data(), slope.data()); \
  for (std::size_t i = 0; i < x.size() && std::string_view(#name) != "gelu"; ++i)                  \
    EXPECT_NEAR(static_cast<double>(d[i]), slope[i], 1e-6 * (1 + std::abs(slope[i])))              \
        << name_of(isa) << " gradient of " << #name << " " << x[i];
    PACELINE_ELEMENTWISE_OPS(PACELINE_EXPECT)
#undef PACELINE_EXPECT
  }
}

TEST(Kernels, GiveGeluOfEveryBf16NumberAsItsFloatRounded) {
  constexpr std::int64_t kAll = 1 << 16;
  std::vector<base::BFloat16> numbers(kAll), results(kAll), d_src(kAll);
  std::vector<float> x(kAll), y(kAll), slopes(kAll), ones(kAll, 1.0f);
  for (std::size_t i = 0; i < kAll; ++i) numbers[i].bits = static_cast<std::uint16_t>(i);
  const std::vector<base::BFloat16> twos(kAll, base::to_bf16(2.0f));
  for (const Isa isa : isas_here()) {
    const Kernels& kernels = kernels_for(isa);
    kernels.bf16.to_float(numbers.data(), x.data(), kAll);
    kernels.f32.gelu(x.data(), y.data(), kAll);
    kernels.f32.gelu_backward(x.data(), ones.data(), slopes.data(), kAll);
    kernels.bf16.gelu(numbers.data(), results.data(), kAll);
    kernels.bf16.gelu_backward(numbers.data(), twos.data(), d_src.data(), kAll);
    const auto expect = [&](base::BFloat16 got, float want, float of) {
      if (std::isnan(want)) {
        EXPECT_TRUE(std::isnan(base::to_float(got))) << name_of(isa) << " " << of;
      } else if (isa == Isa::avx512_bf16 && std::fpclassify(want) == FP_SUBNORMAL) {
        EXPECT_EQ(base::to_float(got), 0.0f) << of;
      } else {
        EXPECT_EQ(got.bits, base::to_bf16(want).bits) << name_of(isa) << " " << of;
      }
    };
    for (std::size_t i = 0; i < kAll; ++i) {
      expect(results[i], y[i], x[i]);
      expect(d_src[i], 2 * slopes[i], x[i]);
    }
  }
}

TEST(Kernels, KeepNaNThroughReluAndMaxPool) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const Isa isa : isas_here()) {
    std::vector<float> x = random_values(33, 2), y(33);
    x[4] = x[32] = nan;
    kernels_for(isa).f32.relu(x.data(), y.data(), 33);
    for (std::size_t i = 0; i < 33; ++i) EXPECT_EQ(std::isnan(y[i]), std::isnan(x[i]));
    // One window of four pixels, two channels: NaN at any place wins.
    const PoolAxis axis{.size = 2, .positions = 1, .kernel = 2, .stride = 2};
    const PoolShape shape{.channels = 2, .rows = axis, .columns = axis};
    for (std::size_t place = 0; place < 4; ++place) {
      std::vector<float> image = {1, 2, 3, 4, 5, 6, 7, 8}, best(2);
      std::vector<std::uint8_t> winner(2);
      image[2 * place] = nan;
      kernels_for(isa).f32.max_pool(image.data(), best.data(), winner.data(), false, shape, 0, 1);
      EXPECT_TRUE(std::isnan(best[0]));
      EXPECT_EQ(winner[0], place);
      EXPECT_EQ(best[1], 8.0f);
    }
  }
}

// What a ReLU's mask would keep of d_src, without looking at src again: overlapping windows, values of both
// signs and zeros of both, NaN.
TEST(Kernels, LeaveWindowsWithoutPositiveValuesWithoutAWinner) {
  const PoolAxis axis{.size = 7, .positions = 4, .kernel = 3, .stride = 2, .padding = 1};
  const PoolShape shape{.channels = 19, .rows = axis, .columns = axis};
  constexpr std::size_t kSrc = 7 * 7 * 19, kDst = 4 * 4 * 19;
  for (const Isa isa : isas_here()) {
    std::vector<float> src = random_values(kSrc, 6);
    for (std::size_t i = 0; i < kSrc; ++i) src[i] = i % 3 == 0 ? src[i] - 3 : i % 7 == 0 ? -0.0f : src[i];
    std::fill_n(src.begin(), 19 * 16, -1.0f);  // whole windows of negative values, of zeros, and a NaN
    std::fill_n(src.begin() + 19 * 35, 19 * 14, 0.0f);
    src[5] = std::numeric_limits<float>::quiet_NaN();
    const std::vector<float> d_dst = random_values(kDst, 7);
    std::vector<float> dst(kDst), d_masked(kSrc), d_src(kSrc);
    std::vector<std::uint8_t> winner(kDst);
    const TypedKernels& kernels = kernels_for(isa).f32;
    kernels.max_pool(src.data(), dst.data(), winner.data(), false, shape, 0, 4);
    kernels.max_pool_backward(d_dst.data(), winner.data(), d_masked.data(), shape, 0, 7);
    kernels.relu_backward(src.data(), d_masked.data(), d_masked.data(), kSrc);
    kernels.max_pool(src.data(), dst.data(), winner.data(), true, shape, 0, 4);
    kernels.max_pool_backward(d_dst.data(), winner.data(), d_src.data(), shape, 0, 7);
    EXPECT_EQ(d_src, d_masked) << name_of(isa);
    EXPECT_GT(std::count(winner.begin(), winner.end(), kNoWinner), 19) << "some window had none";
    EXPECT_NE(d_src[5], 0.0f) << "where the value is NaN the gradient passes";
  }
}

TEST(Kernels, PutChannelsLast) {
  for (const Isa isa : isas_here())
    for (const int channels : {1, 3, 16, 17, 32, 50})
      for (const int pixels : {1, 2, 15, 16, 36, 49}) {
        const auto count = static_cast<std::size_t>(channels * pixels);
        std::vector<std::uint8_t> planes(count), got(count + 1, 77);
        for (std::size_t i = 0; i < count; ++i) planes[i] = static_cast<std::uint8_t>(i * 7 + i / 256);
        kernels_for(isa).channels_last(planes.data(), channels, pixels, got.data());
        for (int pixel = 0; pixel < pixels; ++pixel)
          for (int c = 0; c < channels; ++c)
            ASSERT_EQ(got[static_cast<std::size_t>(pixel * channels + c)],
                      planes[static_cast<std::size_t>(c * pixels + pixel)])
                << name_of(isa) << ": " << channels << " channels, " << pixels << " pixels";
        EXPECT_EQ(got[count], 77);
      }
}

TEST(Kernels, SumMomentsWithoutCancellation) {
  // Mean 1000, deviation 1: squares around zero would lose everything in float.
  for (const Isa isa : isas_here())
    for (const int channels : {1, 3, 16, 17, 40, 64})
      for (const int rows : {1, 2, 63, 64, 65, 500}) {
        std::vector<float> x = random_values(static_cast<std::size_t>(rows * channels), 5);
        for (float& value : x) value += 1000;
        const std::vector<float> shift(static_cast<std::size_t>(channels), 1000.0f);
        std::vector<double> sums(static_cast<std::size_t>(2 * channels), 0.0);
        kernels_for(isa).f32.moments(x.data(), rows, channels, shift.data(), sums.data());
        for (int c = 0; c < channels; ++c) {
          double sum = 0, squares = 0;
          for (int r = 0; r < rows; ++r) {
            const double d = static_cast<double>(x[static_cast<std::size_t>(r * channels + c)]) - 1000;
            sum += d;
            squares += d * d;
          }
          EXPECT_NEAR(sums[static_cast<std::size_t>(c)], sum, 1e-6 * rows);
          EXPECT_NEAR(sums[static_cast<std::size_t>(channels + c)], squares, 1e-6 * rows);
        }
      }
}

TEST(Kernels, WriteNothingBehindTheLastElement) {
  for (const Isa isa : isas_here())
    for (const int count : kCounts) {
      const auto n = static_cast<std::size_t>(count);
      const std::vector<float> a = random_values(n + 1, 3), b = random_values(n + 1, 4);
      std::vector<float> dst(n + 1, 42.0f);
      const Kernels& kernels = kernels_for(isa);
      kernels.f32.add(a.data(), b.data(), dst.data(), true, count);
      for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(dst[i], std::max(a[i] + b[i], 0.0f));
      EXPECT_EQ(dst[n], 42.0f);
      kernels.f32.relu_backward(a.data(), b.data(), dst.data(), count);
      for (std::size_t i = 0; i < n; ++i) EXPECT_EQ(dst[i], a[i] > 0 ? b[i] : 0.0f);
      EXPECT_EQ(dst[n], 42.0f);
      kernels.accumulate(a.data(), dst.data(), count);
      EXPECT_EQ(dst[n], 42.0f);
    }
}

TEST(Isas, AreAtLeastTheBaseline) {
  ASSERT_FALSE(isas_here().empty());
  EXPECT_EQ(isas_here().front(), Isa::baseline);
}

}  // namespace
}  // namespace paceline::engine::cpu
