// The host's convolutions against sums in double, element by element.

#include "engine/cuda/runtime/host_runtime.h"
#include "engine/cuda/storage.h"

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "base/error.h"
#include "base/rng.h"
#include "engine/cuda/conv_problem.h"
#include "engine/cuda/kernels/kernel.h"

namespace paceline::engine::cuda {
namespace {

/// An array in storage, and the numbers that it holds.
struct Operand {
  std::vector<std::byte> stored;
  std::vector<double> values;
  Precision precision = Precision::f32;

  Operand(std::int64_t elements, Precision storage, std::uint64_t seed)
      : stored(static_cast<std::size_t>(elements * bytes_of(storage)), std::byte{0xff}), precision(storage) {
    base::Rng rng(seed, base::Purpose::test);
    for (std::int64_t i = 0; i < elements; ++i) {
      with_storage(storage,
                   [&]<typename T>(T) { store(rng.normal(), reinterpret_cast<T*>(stored.data())[i]); });
      values.push_back(at(i));
    }
  }
  [[nodiscard]] double at(std::int64_t i) const {
    double value = 0;
    with_storage(precision, [&]<typename T>(T) {
      value = static_cast<double>(load(reinterpret_cast<const T*>(stored.data())[i]));
    });
    return value;
  }
};

/// Calls visit(src element, weight element, dst element) for every product of the convolution.
template <typename Visit>
void for_each_product(const ConvProblem& p, const Visit& visit) {
  for (int n = 0; n < p.samples; ++n)
    for (int y = 0; y < p.height_out; ++y)
      for (int x = 0; x < p.width_out; ++x)
        for (int r = 0; r < p.kernel_height; ++r)
          for (int s = 0; s < p.kernel_width; ++s) {
            const int h = y * p.stride.height - p.padding.height + r * p.dilation.height;
            const int w = x * p.stride.width - p.padding.width + s * p.dilation.width;
            if (h < 0 || h >= p.height_in || w < 0 || w >= p.width_in) continue;
            for (int k = 0; k < p.channels_out; ++k)
              for (int c = 0; c < p.channels_in; ++c)
                visit(((std::int64_t{n} * p.height_in + h) * p.width_in + w) * p.channels_in + c,
                      ((std::int64_t{k} * p.kernel_height + r) * p.kernel_width + s) * p.channels_in + c,
                      ((std::int64_t{n} * p.height_out + y) * p.width_out + x) * p.channels_out + k);
          }
}

struct HostCase {
  Precision precision;
  ConvDirection direction;
  HostLoops loops;
};
std::vector<HostCase> all_cases() {
  std::vector<HostCase> all;
  for (const Precision precision : {Precision::f32, Precision::bf16, Precision::f16})
    for (const ConvDirection direction :
         {ConvDirection::forward, ConvDirection::backward_data, ConvDirection::backward_weights})
      for (const HostLoops loops : {HostLoops::ascending, HostLoops::descending})
        all.push_back({precision, direction, loops});
  return all;
}

TEST(HostConvolution, SumsWhatItsDefinitionSays) {
  struct Case {
    int samples, in, height, width, out;
    graph::Pair kernel, stride, padding, dilation = 1;
  };
  for (const Case& c :
       {Case{2, 8, 5, 7, 16, 3, 1, 1}, Case{1, 16, 8, 8, 8, 3, 2, 1}, Case{3, 8, 4, 4, 24, 1, 2, 0},
        Case{2, 8, 9, 6, 8, 5, 2, 2}, Case{9, 64, 1, 1, 16, 1, 1, 0}, Case{1, 8, 3, 3, 8, 2, 3, 1},
        Case{5, 8, 11, 11, 8, 7, 2, 3}, Case{2, 8, 5, 9, 16, {1, 7}, 1, {0, 3}},
        Case{2, 8, 9, 6, 8, {3, 2}, {2, 1}, {2, 1}, {2, 3}}})
    for (const auto& [precision, direction, loops] : all_cases()) {
      ConvProblem p{.direction = direction, .precision = precision, .samples = c.samples};
      p.channels_in = c.in;
      p.height_in = c.height;
      p.width_in = c.width;
      p.channels_out = c.out;
      p.kernel_height = c.kernel.height;
      p.kernel_width = c.kernel.width;
      p.stride = c.stride;
      p.padding = c.padding;
      p.dilation = c.dilation;
      p.height_out = (c.height + 2 * c.padding.height - c.dilation.height * (c.kernel.height - 1) - 1) /
                         c.stride.height +
                     1;
      p.width_out =
          (c.width + 2 * c.padding.width - c.dilation.width * (c.kernel.width - 1) - 1) / c.stride.width + 1;
      SCOPED_TRACE(describe(p));
      Operand src(p.src_elements(), precision, 1), weight(p.weight_elements(), precision, 2),
          dst(p.dst_elements(), precision, 3);
      convolve_on_host(p, {src.stored.data(), dst.stored.data(), weight.stored.data(), nullptr}, loops);
      Operand& result = direction == ConvDirection::forward         ? dst
                        : direction == ConvDirection::backward_data ? src
                                                                    : weight;
      std::vector<double> want(result.values.size(), 0), sizes(result.values.size(), 0);
      for_each_product(p, [&](std::int64_t s, std::int64_t w, std::int64_t d) {
        const auto si = static_cast<std::size_t>(s), wi = static_cast<std::size_t>(w),
                   di = static_cast<std::size_t>(d);
        const std::size_t to = direction == ConvDirection::forward         ? di
                               : direction == ConvDirection::backward_data ? si
                                                                           : wi;
        const double product = direction == ConvDirection::forward ? src.values[si] * weight.values[wi]
                               : direction == ConvDirection::backward_data
                                   ? dst.values[di] * weight.values[wi]
                                   : src.values[si] * dst.values[di];
        want[to] += product;
        sizes[to] += std::abs(product);
      });
      // Half of the last digit: bf16 has 8 of them, fp16 11.
      const double rounding = precision == Precision::f32    ? 0
                              : precision == Precision::bf16 ? 0x1p-8
                                                             : 0x1p-11;
      for (std::size_t i = 0; i < want.size(); ++i)
        ASSERT_NEAR(result.at(static_cast<std::int64_t>(i)), want[i],
                    sizes[i] * 0x1p-24 * 1000 + std::abs(want[i]) * rounding)
            << "element " << i;
    }
}

TEST(HostConvolution, GivesASampleTheSameBitsInAnyBatch) {
  ConvProblem p{.direction = ConvDirection::forward, .precision = Precision::f32, .samples = 3};
  p.channels_in = p.channels_out = 16;
  p.height_in = p.width_in = p.height_out = p.width_out = 5;
  p.kernel_height = p.kernel_width = 3;
  p.padding = 1;
  Operand src(p.src_elements(), p.precision, 1), weight(p.weight_elements(), p.precision, 2),
      whole(p.dst_elements(), p.precision, 3), parts(p.dst_elements(), p.precision, 4);
  convolve_on_host(p, {src.stored.data(), whole.stored.data(), weight.stored.data(), nullptr});
  p.samples = 1;
  for (int n = 0; n < 3; ++n)
    convolve_on_host(p, {src.stored.data() + 4 * n * p.src_elements(),
                         parts.stored.data() + 4 * n * p.dst_elements(), weight.stored.data(), nullptr});
  EXPECT_EQ(whole.stored, parts.stored);
}

// Else no test would see which of them a run computes with.
TEST(HostConvolution, OfBothLoopsDiffersInBits) {
  ConvProblem p{.precision = Precision::f32, .samples = 2};
  p.channels_in = p.channels_out = 16;
  p.height_in = p.width_in = p.height_out = p.width_out = 5;
  for (const ConvDirection direction :
       {ConvDirection::forward, ConvDirection::backward_data, ConvDirection::backward_weights}) {
    p.direction = direction;
    const auto computed = [&](HostLoops loops) {
      Operand src(p.src_elements(), p.precision, 1), weight(p.weight_elements(), p.precision, 2),
          dst(p.dst_elements(), p.precision, 3);
      convolve_on_host(p, {src.stored.data(), dst.stored.data(), weight.stored.data(), nullptr}, loops);
      return direction == ConvDirection::forward         ? dst.stored
             : direction == ConvDirection::backward_data ? src.stored
                                                         : weight.stored;
    };
    EXPECT_NE(computed(HostLoops::ascending), computed(HostLoops::descending)) << describe(p);
  }
}

// No convolution of the engine's reaches a library, or these loops, with sizes that do not fit together.
TEST(HostConvolution, IsNotMadeForAWrongProblem) {
  HostRuntime runtime;
  ConvProblem right{.direction = ConvDirection::forward, .precision = Precision::f32, .samples = 2};
  right.channels_in = 16;
  right.channels_out = 24;
  right.height_in = 8;
  right.width_in = 6;
  right.height_out = 4;
  right.width_out = 3;
  right.kernel_height = right.kernel_width = 3;
  right.stride = 2;
  right.padding = 1;
  EXPECT_NO_THROW(static_cast<void>(runtime.make_convolution(right, {})));
  const auto expect_refused = [&](auto change) {
    ConvProblem wrong = right;
    change(wrong);
    EXPECT_THROW(static_cast<void>(runtime.make_convolution(wrong, {})), base::Error) << describe(wrong);
  };
  expect_refused([](ConvProblem& p) { p.channels_in = 12; });                     // not padded
  expect_refused([](ConvProblem& p) { std::swap(p.channels_in, p.height_in); });  // another layout
  expect_refused([](ConvProblem& p) { std::swap(p.height_out, p.width_out); });
  expect_refused([](ConvProblem& p) { p.stride = 1; });
  expect_refused([](ConvProblem& p) { p.samples = 0; });

  // What is right by itself, but half of what the layer has.
  EXPECT_NO_THROW(check_operands(right, right.src_elements(), right.weight_elements(), right.dst_elements()));
  ConvProblem half = right;
  half.channels_in = 8;
  try {
    check_operands(half, right.src_elements(), right.weight_elements(), right.dst_elements());
    FAIL() << "half of the channels were taken";
  } catch (const base::Error& error) {
    EXPECT_NE(std::string(error.what()).find("its input must have 768 elements, but the layer's has 1536"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace paceline::engine::cuda
