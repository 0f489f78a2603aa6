#pragma once

/// Elementwise kernels: ReLU, GELU, the sum of two values, and the sum of gradient terms.
///
/// Each op is a functor of fp32 values, which Map1 or Map2 applies to arrays in storage T. An output may be
/// one of the inputs. Padding stays 0.
///
/// Shapes   arrays of 8 * `vectors` elements
/// Cost     each input is read once, the output written once

#include <cmath>

#include "engine/cuda/kernels/vector.h"

namespace paceline::engine::cuda {

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
  [[nodiscard]] PACELINE_HD int phases() const { return 1; }
  PACELINE_HD void run(int, const ThreadIndex& at, float*) const {
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
  [[nodiscard]] PACELINE_HD int phases() const { return 1; }
  PACELINE_HD void run(int, const ThreadIndex& at, float*) const {
    for (std::int64_t i = at.global(); i < vectors; i += at.global_count()) {
      Float8 x = load8(first + i * kVector);
      const Float8 y = load8(second + i * kVector);
      PACELINE_UNROLL
      for (int k = 0; k < kVector; ++k) x.value[k] = Function::apply(x.value[k], y.value[k]);
      store8(x, dst + i * kVector);
    }
  }
};

template <typename T>
using Relu = Map1<ReluFunction, T>;
template <typename T>
using ReluBackward = Map2<ReluGradient, T>;  ///< first = dst, second = d_dst, dst = d_src
template <typename T>
using Gelu = Map1<GeluFunction, T>;
template <typename T>
using GeluBackward = Map2<GeluGradient, T>;  ///< first = src, second = d_dst, dst = d_src
/// The sum of two values. With dst = first it adds a gradient term to another.
template <typename T>
using Add = Map2<AddFunction, T>;
template <typename T>
using AddRelu = Map2<AddReluFunction, T>;  ///< its backward is ReluBackward, for both inputs

}  // namespace paceline::engine::cuda
