#pragma once

/// What the tests of single product kernels share: shapes, sums in double, and a run of a kernel on fresh
/// random data with poisoned results and scratchpads.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <string>
#include <vector>

#include "base/buffer.h"
#include "base/dtype.h"
#include "base/rng.h"
#include "engine/cpu/conv/algorithms.h"
#include "engine/cpu/conv/bf16/algorithms.h"
#include "engine/cpu/conv/kernel.h"
#include "engine/cpu/parallel.h"
#include "engine/program.h"

namespace paceline::engine::cpu {

/// A WeightReader or a WgradKernel, by the direction.
inline std::unique_ptr<ConvKernel> make_kernel(const ConvAlgorithm& algorithm, const ConvShape& shape,
                                               Direction direction) {
  if (direction == Direction::backward_weights) return algorithm.make_wgrad(shape, nullptr);
  return algorithm.make_reader(shape, direction, nullptr);
}
inline std::unique_ptr<ConvKernel> make_kernel(const Bf16Algorithm& algorithm, const ConvShape& shape,
                                               Direction direction, const tiles::TileKernels& kernels) {
  if (direction == Direction::backward_weights) return algorithm.make_wgrad(shape, kernels);
  return algorithm.make_reader(shape, direction, kernels);
}

/// By the usual bf16 algorithm with these kernels, whether the machine has their unit or not.
inline std::unique_ptr<ConvKernel> make_tile_kernel(const ConvShape& shape, Direction direction,
                                                    const tiles::TileKernels& kernels) {
  return make_kernel(usual_bf16_algorithm(shape, direction, kernels), shape, direction, kernels);
}
inline std::unique_ptr<WeightReader> make_tile_reader(const ConvShape& shape, Direction direction,
                                                      const tiles::TileKernels& kernels) {
  return usual_bf16_algorithm(shape, direction, kernels).make_reader(shape, direction, kernels);
}
inline std::unique_ptr<WgradKernel> make_tile_wgrad(const ConvShape& shape,
                                                    const tiles::TileKernels& kernels) {
  return usual_bf16_algorithm(shape, Direction::backward_weights, kernels).make_wgrad(shape, kernels);
}

using Values = std::vector<float>;

struct Case {
  int in, out, height, width, kernel, stride, padding, samples;
};

inline std::string text_of(const Case& c) {
  testing::Message text;
  text << c.in << "->" << c.out << " " << c.height << "x" << c.width << " kernel " << c.kernel << " stride "
       << c.stride << " padding " << c.padding << " samples " << c.samples;
  return text.GetString();
}

/// kernel 0: a dense layer.
inline ConvShape shape_of(const Case& c) {
  if (c.kernel == 0)
    return {.is_dense = true, .samples = c.samples, .src = {c.in, c.height, c.width}, .dst = {c.out, 1, 1}};
  const auto size = [&](int pixels) { return (pixels + 2 * c.padding - c.kernel) / c.stride + 1; };
  return {.samples = c.samples,
          .src = {c.in, c.height, c.width},
          .dst = {c.out, size(c.height), size(c.width)},
          .kernel = c.kernel,
          .stride = c.stride,
          .padding = c.padding};
}

/// Shapes that break kernels in fp32: odd sizes and channels, all kernels, strides and edges.
inline constexpr Case kKernelCases[] = {
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

inline Values random_values(std::int64_t count, std::uint64_t seed) {
  base::Rng rng(seed, base::Purpose::test);
  Values values(static_cast<std::size_t>(count));
  for (float& value : values) value = rng.normal();
  return values;
}

inline Values rounded_to_bf16(Values values) {
  for (float& value : values) value = base::to_float(base::to_bf16(value));
  return values;
}

struct Data {
  std::span<const float> src, weight, d_dst;
  std::span<const float> bias = {};  ///< empty: none
};

/// Which of the products are wanted: the others are not computed, and stay 0.
struct Wanted {
  bool dst = true, d_src = true, d_weight = true;
};

/// One tap at one pixel: all output channels by all input channels, whose weights lie `taps` apart. Optimised
/// though tests are not: most of the time of these tests passes here.
struct Terms {
  const float *src, *weight, *d_dst;
};
struct Sums {
  double *dst, *d_src, *d_weight;
};
__attribute__((optimize("O2"))) inline void add_products(const Terms& terms, const Sums& sums, int outs,
                                                         int ins, std::int64_t taps, const Wanted& wanted) {
  for (int k = 0; k < outs; ++k) {
    const double d = terms.d_dst[k];
    const float* weight = terms.weight + k * ins * taps;
    if (wanted.dst) {
      double dst = sums.dst[k];
      const float* b = weight;
      for (int c = 0; c < ins; ++c, b += taps) dst += static_cast<double>(terms.src[c]) * *b;
      sums.dst[k] = dst;
    }
    if (wanted.d_src) {
      const float* b = weight;
      for (int c = 0; c < ins; ++c, b += taps) sums.d_src[c] += d * *b;
    }
    if (wanted.d_weight) {
      double* d_weight = sums.d_weight + k * ins * taps;
      for (int c = 0; c < ins; ++c, d_weight += taps) *d_weight += d * static_cast<double>(terms.src[c]);
    }
  }
}

/// The three products, term by term, in double.
struct Expected {
  std::vector<double> dst, d_src, d_weight, d_bias;

  Expected(const ConvShape& s, const Data& data, const Wanted& wanted = {})
      : dst(data.d_dst.size()),
        d_src(data.src.size()),
        d_weight(data.weight.size()),
        d_bias(data.bias.size()) {
    const int kernel_height = s.is_dense ? s.src.height : s.kernel;
    const int kernel_width = s.is_dense ? s.src.width : s.kernel;
    const auto at = [](const graph::Shape& shape, int n, int y, int x, int c) {
      return static_cast<std::size_t>(
          ((std::int64_t{1} * n * shape.height + y) * shape.width + x) * shape.channels + c);
    };
    for (int n = 0; n < s.samples; ++n)
      for (int p = 0; p < s.dst.height; ++p)
        for (int q = 0; q < s.dst.width; ++q) {
          for (std::size_t k = 0; k < data.bias.size(); ++k) {
            const auto o = at(s.dst, n, p, q, static_cast<int>(k));
            dst[o] += static_cast<double>(data.bias[k]);
            d_bias[k] += static_cast<double>(data.d_dst[o]);
          }
          for (int r = 0; r < kernel_height; ++r)
            for (int t = 0; t < kernel_width; ++t) {
              const int y = p * s.stride - s.padding + r, x = q * s.stride - s.padding + t;
              if (y < 0 || y >= s.src.height || x < 0 || x >= s.src.width) continue;
              const auto i = at(s.src, n, y, x, 0), o = at(s.dst, n, p, q, 0);
              const int taps = kernel_height * kernel_width, tap = r * kernel_width + t;
              add_products({.src = &data.src[i], .weight = &data.weight[0] + tap, .d_dst = &data.d_dst[o]},
                           {&dst[o], &d_src[i], &d_weight[0] + tap}, s.dst.channels, s.src.channels, taps,
                           wanted);
            }
        }
  }
};

/// |got - want| / |want|; NaN stays, and fails comparisons.
inline double relative_error(const Values& got, const std::vector<double>& want) {
  double error = 0, size = 0;
  for (std::size_t i = 0; i < want.size(); ++i) {
    const double d = static_cast<double>(got[i]) - want[i];
    error += d * d;
    size += want[i] * want[i];
  }
  return std::sqrt(error / size);
}

/// NaN as float and as either half's bf16.
inline base::Buffer poisoned(std::int64_t bytes) {
  base::Buffer buffer(static_cast<std::size_t>(whole_lines(std::max<std::int64_t>(bytes, 64))));
  std::ranges::fill(buffer.as<std::uint32_t>(), 0x7fffffffu);
  return buffer;
}

/// As they are stored, with nothing behind them.
inline base::Buffer stored(std::span<const float> values, Storage storage) {
  base::Buffer buffer(values.size() * static_cast<std::size_t>(bytes_of(storage)));
  for (std::size_t i = 0; i < values.size(); ++i)
    if (storage == Storage::f32) {
      buffer.as<float>()[i] = values[i];
    } else {
      buffer.as<std::uint16_t>()[i] = base::to_bf16(values[i]).bits;
    }
  return buffer;
}

struct Results {
  Values values;  ///< dst, d_src or d_weight
  Values d_bias;
};

/// `packer`: another chunk's kernel, whose packed weights this one reads; null: its own.
inline Results results_of(const ConvKernel& kernel, const ConvShape& s, Direction direction, const Data& data,
                          const ConvKernel* packer = nullptr) {
  const OneThread one_thread;
  base::ThreadPool pool(2, [] { omp_set_num_threads(1); });
  auto packed = poisoned(kernel.packed_bytes());
  const Storage written_as = direction == Direction::forward ? s.dst_type : s.type;
  const std::size_t count = direction == Direction::backward_data ? data.src.size() : data.d_dst.size();
  const auto src = stored(data.src, s.type), d_dst = stored(data.d_dst, s.type);
  auto written = stored(Values(count, std::numeric_limits<float>::quiet_NaN()), written_as);
  Results results{.d_bias = Values(data.bias.size(), std::numeric_limits<float>::quiet_NaN())};
  Operands o{.src = src.data(),
             .dst = written.data(),
             .d_src = written.data(),
             .d_dst = d_dst.data(),
             .bias = data.bias.empty() ? nullptr : data.bias.data(),
             .d_bias = results.d_bias.data()};
  if (direction == Direction::backward_weights) {
    o.d_weight = packed.as<float>().data();
  } else {
    dynamic_cast<const WeightReader&>(packer ? *packer : kernel).pack(data.weight.data(), packed.data());
    o.packed = packed.data();
  }
  for (int part = kernel.parts() - 1; part >= 0; --part) {  // any order
    auto scratchpad = poisoned(kernel.scratchpad_bytes());
    o.scratchpad = scratchpad.data();
    kernel.run(o, part);
  }
  if (direction == Direction::backward_weights) {
    results.values.resize(data.weight.size(), std::numeric_limits<float>::quiet_NaN());
    dynamic_cast<const WgradKernel&>(kernel).unpack(pool, packed.as<float>().data(), results.values.data());
    return results;
  }
  for (std::size_t i = 0; i < count; ++i)
    results.values.push_back(written_as == Storage::f32 ? written.as<float>()[i]
                                                        : base::to_float({written.as<std::uint16_t>()[i]}));
  return results;
}

}  // namespace paceline::engine::cpu
