#pragma once

/// Elementwise kernels: activations, the sum of two values and of gradient terms, dropout and stochastic
/// depth.
///
/// Each op is a functor of fp32 values, which Map1 or Map2 applies to arrays in storage T. An output may be
/// one of the inputs. Padding becomes f(0): 0 for all but sigmoids; no kernel lets it reach a used channel.
///
/// Shapes   arrays of 8 * `vectors` elements
/// Cost     each input is read once, the output written once

#include <cmath>

#include "engine/cuda/kernels/kernel.h"
#include "graph/elementwise.h"

namespace paceline::engine::cuda {

// The dropout kernel, for forward and backward. Its mask is exactly that of engine/dropout_mask.h, which
// counts elements of a sample in C, H, W order, although memory holds them as [H][W][channels].

struct PhiloxWords {
  std::uint32_t word[4];
};

/// Philox4x32-10, the same function as base::philox().
PACELINE_HD PhiloxWords philox(PhiloxWords counter, std::uint32_t key0, std::uint32_t key1) {
  PACELINE_UNROLL
  for (int round = 0; round < 10; ++round) {
    const std::uint64_t first = std::uint64_t{0xD2511F53u} * counter.word[0];
    const std::uint64_t second = std::uint64_t{0xCD9E8D57u} * counter.word[2];
    counter = {{static_cast<std::uint32_t>(second >> 32) ^ counter.word[1] ^ key0,
                static_cast<std::uint32_t>(second),
                static_cast<std::uint32_t>(first >> 32) ^ counter.word[3] ^ key1,
                static_cast<std::uint32_t>(first)}};
    key0 += 0x9E3779B9u;
    key1 += 0xBB67AE85u;
  }
  return counter;
}

/// dst = src * scale for kept elements, 0 for others and in padding; dst may be src. Forward: activations;
/// backward: src = d_dst, dst = d_src.
///
/// A thread computes 8 channels of one pixel, or of four pixels if the four elements of a Philox call are
/// four pixels.
///
/// Shapes   src, dst [samples][pixels][channels] in storage T
/// Cost     reads src once, writes dst once. One Philox call for 4 elements; but one for each element if
///          `pixels` is neither 1 nor a multiple of 4, which then takes longer than the memory traffic
template <typename T>
struct Dropout {
  const T* src;
  T* dst;
  const StepNumbers* step;
  int samples, pixels, channels;
  int used;                  ///< channels without padding
  std::uint32_t key0, key1;  ///< DropoutMask::key(): seed and op
  std::uint32_t threshold;   ///< DropoutMask::threshold()
  float scale;               ///< float(1 / (1 - probability))

  [[nodiscard]] PACELINE_HD int pixels_at_once() const { return pixels % 4 == 0 ? 4 : 1; }
  [[nodiscard]] PACELINE_HD std::int64_t items() const {
    return std::int64_t{samples} * (pixels / pixels_at_once()) * (channels / kVector);
  }
  [[nodiscard]] Grid grid() const { return grid_for(items()); }
  PACELINE_HD void run(const ThreadIndex& at) const {
    const int lanes = channels / kVector;
    for (std::int64_t item = at.global(); item < items(); item += at.global_count()) {
      const int channel = static_cast<int>(item % lanes) * kVector;
      const std::int64_t place = item / lanes * pixels_at_once();  // index among the pixels of all samples
      const auto sample = static_cast<std::uint32_t>(place / pixels);
      const auto pixel = static_cast<int>(place % pixels);
      if (pixels == 1)
        features(sample, channel);
      else if (pixels % 4 == 0)
        four_pixels(sample, pixel, channel);
      else
        one_pixel(sample, pixel, channel);
    }
  }

 private:
  [[nodiscard]] PACELINE_HD PhiloxWords words(std::uint32_t sample, std::int64_t element) const {
    const auto position = static_cast<std::uint32_t>(step->first_position) + sample;
    return philox({{static_cast<std::uint32_t>(element / 4), position, static_cast<std::uint32_t>(step->step),
                    static_cast<std::uint32_t>(step->step >> 32)}},
                  key0, key1);
  }
  [[nodiscard]] PACELINE_HD std::int64_t address(std::uint32_t sample, int pixel, int channel) const {
    return (std::int64_t{sample} * pixels + pixel) * channels + channel;
  }
  [[nodiscard]] PACELINE_HD float kept(float value, std::uint32_t word, int channel) const {
    return channel < used && word >= threshold ? value * scale : 0;
  }
  PACELINE_HD void features(std::uint32_t sample, int channel) const {
    const std::int64_t i = address(sample, 0, channel);
    Float8 x = load8(src + i);
    PACELINE_UNROLL
    for (int half = 0; half < 2; ++half) {
      const PhiloxWords w = words(sample, channel + 4 * half);
      PACELINE_UNROLL
      for (int k = 0; k < 4; ++k)
        x.value[4 * half + k] = kept(x.value[4 * half + k], w.word[k], channel + 4 * half + k);
    }
    store8(x, dst + i);
  }
  PACELINE_HD void four_pixels(std::uint32_t sample, int pixel, int channel) const {
    Float8 x[4];
    PACELINE_UNROLL
    for (int p = 0; p < 4; ++p) x[p] = load8(src + address(sample, pixel + p, channel));
    PACELINE_UNROLL
    for (int k = 0; k < kVector; ++k) {
      const PhiloxWords w = words(sample, std::int64_t{channel + k} * pixels + pixel);
      PACELINE_UNROLL
      for (int p = 0; p < 4; ++p) x[p].value[k] = kept(x[p].value[k], w.word[p], channel + k);
    }
    PACELINE_UNROLL
    for (int p = 0; p < 4; ++p) store8(x[p], dst + address(sample, pixel + p, channel));
  }
  PACELINE_HD void one_pixel(std::uint32_t sample, int pixel, int channel) const {
    const std::int64_t i = address(sample, pixel, channel);
    Float8 x = load8(src + i);
    PACELINE_UNROLL
    for (int k = 0; k < kVector; ++k) {
      const std::int64_t element = std::int64_t{channel + k} * pixels + pixel;
      const PhiloxWords w = words(sample, element);
      const int which = static_cast<int>(element % 4);
      const std::uint32_t word = which == 0   ? w.word[0]
                                 : which == 1 ? w.word[1]
                                 : which == 2 ? w.word[2]
                                              : w.word[3];
      x.value[k] = kept(x.value[k], word, channel + k);
    }
    store8(x, dst + i);
  }
};

/// Stochastic depth: dst = src * scale for kept samples, 0 for others; dst may be src. The decision is that
/// of DropoutMask::keeps_sample(). Forward: activations; backward: src = d_dst, dst = d_src.
///
/// Shapes   src, dst [samples][vectors * 8]
/// Cost     reads src once, writes dst once; a Philox call for 8 elements
template <typename T>
struct StochasticDepth {
  const T* src;
  T* dst;
  const StepNumbers* step;
  int samples;
  std::int64_t vectors;      ///< of a sample
  std::uint32_t key0, key1;  ///< DropoutMask::key(): seed and op
  std::uint32_t threshold;   ///< DropoutMask::threshold()
  float scale;               ///< float(1 / (1 - probability))

  [[nodiscard]] Grid grid() const { return grid_for(samples * vectors); }
  PACELINE_HD void run(const ThreadIndex& at) const {
    for (std::int64_t v = at.global(); v < samples * vectors; v += at.global_count()) {
      const auto position =
          static_cast<std::uint32_t>(step->first_position) + static_cast<std::uint32_t>(v / vectors);
      const PhiloxWords words = philox({{0, position, static_cast<std::uint32_t>(step->step),
                                         static_cast<std::uint32_t>(step->step >> 32)}},
                                       key0, key1);
      Float8 x = load8(src + v * kVector);
      PACELINE_UNROLL
      for (int k = 0; k < kVector; ++k) x.value[k] = words.word[0] >= threshold ? x.value[k] * scale : 0;
      store8(x, dst + v * kVector);
    }
  }
};

/// max(x, 0); NaN stays NaN, so that a diverged training is noticed.
struct ReluFunction {
  PACELINE_HD static float apply(float x) { return x < 0 ? 0 : x; }
};
/// A function of dst and d_dst.
struct ReluGradient {
  PACELINE_HD static float apply(float dst, float d_dst) { return dst > 0 ? d_dst : 0; }
};
/// x * Phi(x), exact; Phi is the normal distribution function.
struct GeluFunction {
  PACELINE_HD static float apply(float x) { return x * (1.0f + erff(x * kRootHalf)) / 2; }
  static constexpr float kRootHalf = 0.70710678118654752440f;
};
/// A function of src and d_dst.
struct GeluGradient {
  PACELINE_HD static float apply(float x, float d_dst) {
    constexpr float kDensity = 0.39894228040143267794f;  // 1 / sqrt(2 pi)
    const float phi = (1.0f + erff(x * GeluFunction::kRootHalf)) / 2;
    return d_dst * (phi + x * kDensity * expf(-x * x / 2));
  }
};
// The activations of mobile networks. The sides of a kink are PyTorch's.

struct Relu6Function {
  PACELINE_HD static float apply(float x) { return x < 0 ? 0 : x > 6 ? 6 : x; }
};
/// A function of dst and d_dst.
struct Relu6Gradient {
  PACELINE_HD static float apply(float dst, float d_dst) { return dst > 0 && dst < 6 ? d_dst : 0; }
};
struct SigmoidFunction {
  PACELINE_HD static float apply(float x) { return 1.0f / (1.0f + expf(-x)); }
};
/// A function of dst and d_dst.
struct SigmoidGradient {
  PACELINE_HD static float apply(float dst, float d_dst) { return d_dst * dst * (1.0f - dst); }
};
struct SiluFunction {
  PACELINE_HD static float apply(float x) { return x * SigmoidFunction::apply(x); }
};
/// A function of src and d_dst.
struct SiluGradient {
  PACELINE_HD static float apply(float x, float d_dst) {
    const float below = SigmoidFunction::apply(x);
    return d_dst * below * (1.0f + x * (1.0f - below));
  }
};
struct TanhFunction {
  PACELINE_HD static float apply(float x) { return tanhf(x); }
};
/// A function of dst and d_dst.
struct TanhGradient {
  PACELINE_HD static float apply(float dst, float d_dst) { return d_dst * (1.0f - dst * dst); }
};
struct HardSigmoidFunction {
  PACELINE_HD static float apply(float x) { return Relu6Function::apply(x + 3.0f) / 6.0f; }
};
/// A function of src and d_dst.
struct HardSigmoidGradient {
  PACELINE_HD static float apply(float x, float d_dst) { return x > -3 && x < 3 ? d_dst / 6.0f : 0; }
};
struct HardSwishFunction {
  PACELINE_HD static float apply(float x) { return x * HardSigmoidFunction::apply(x); }
};
/// A function of src and d_dst.
struct HardSwishGradient {
  PACELINE_HD static float apply(float x, float d_dst) {
    return x < -3 ? 0 : x > 3 ? d_dst : d_dst * (x / 3.0f + 0.5f);
  }
};
struct AddFunction {
  PACELINE_HD static float apply(float left, float right) { return left + right; }
};
struct AddReluFunction {
  PACELINE_HD static float apply(float left, float right) { return ReluFunction::apply(left + right); }
};

/// dst = Function(src)
template <typename Function, typename T>
struct Map1 {
  const T* src;
  T* dst;
  std::int64_t vectors;

  [[nodiscard]] Grid grid() const { return grid_for(vectors); }
  PACELINE_HD void run(const ThreadIndex& at) const {
    for (std::int64_t i = at.global(); i < vectors; i += at.global_count()) {
      Float8 x = load8(src + i * kVector);
      PACELINE_UNROLL
      for (int k = 0; k < kVector; ++k) x.value[k] = Function::apply(x.value[k]);
      store8(x, dst + i * kVector);
    }
  }
};

/// dst = Function(first, second)
template <typename Function, typename T>
struct Map2 {
  const T* first;
  const T* second;
  T* dst;
  std::int64_t vectors;

  [[nodiscard]] Grid grid() const { return grid_for(vectors); }
  PACELINE_HD void run(const ThreadIndex& at) const {
    for (std::int64_t i = at.global(); i < vectors; i += at.global_count()) {
      Float8 x = load8(first + i * kVector);
      const Float8 y = load8(second + i * kVector);
      PACELINE_UNROLL
      for (int k = 0; k < kVector; ++k) x.value[k] = Function::apply(x.value[k], y.value[k]);
      store8(x, dst + i * kVector);
    }
  }
};

// Of each op of graph/elementwise.h `Op` and `OpBackward`, whose first input is what the op's rule keeps (src
// or dst), the second d_dst, and whose dst is d_src.
#define PACELINE_MAPS(Op, name)     \
  template <typename T>             \
  using Op = Map1<Op##Function, T>; \
  template <typename T>             \
  using Op##Backward = Map2<Op##Gradient, T>;
PACELINE_ELEMENTWISE_OPS(PACELINE_MAPS)
#undef PACELINE_MAPS

/// The sum of two values. With dst = first it adds a gradient term to another.
template <typename T>
using Add = Map2<AddFunction, T>;
template <typename T>
using AddRelu = Map2<AddReluFunction, T>;  ///< its backward is ReluBackward, for both inputs

}  // namespace paceline::engine::cuda
