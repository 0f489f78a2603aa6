#pragma once

/// Kernels of the product of two values, one of which may have one factor for all pixels of a sample.

#include "engine/cuda/kernels/kernel.h"

namespace paceline::engine::cuda {

/// dst = src * factor, where `pixels` adjacent rows of src share one row of factors; dst may be src.
///
/// Shapes   src, dst [items][pixels][channels]; factor [items][channels]
/// Cost     reads src once, writes dst once
template <typename T>
struct Scale {
  std::int64_t items;
  int pixels, channels;
  const T* src;
  const T* factor;
  T* dst;

  [[nodiscard]] PACELINE_HD std::int64_t vectors() const { return items * pixels * (channels / kVector); }
  [[nodiscard]] Grid grid() const { return grid_for(vectors()); }
  PACELINE_HD void run(const ThreadIndex& at) const {
    const int lanes = channels / kVector;
    for (std::int64_t v = at.global(); v < vectors(); v += at.global_count()) {
      Float8 x = load8(src + v * kVector);
      const Float8 by = load8(factor + (v / lanes / pixels * lanes + v % lanes) * kVector);
      PACELINE_UNROLL
      for (int k = 0; k < kVector; ++k) x.value[k] *= by.value[k];
      store8(x, dst + v * kVector);
    }
  }
};

/// d_factor = the sum of d_dst * src over an item's pixels, in fp32 and in their order.
///
/// Shapes   as Scale
/// Cost     reads src and d_dst once
template <typename T>
struct ScaleGradient {
  std::int64_t items;
  int pixels, channels;
  const T* src;
  const T* d_dst;
  T* d_factor;

  [[nodiscard]] PACELINE_HD std::int64_t vectors() const { return items * (channels / kVector); }
  [[nodiscard]] Grid grid() const { return grid_for(vectors()); }
  PACELINE_HD void run(const ThreadIndex& at) const {
    const int lanes = channels / kVector;
    for (std::int64_t v = at.global(); v < vectors(); v += at.global_count()) {
      const std::int64_t first = (v / lanes * pixels * lanes + v % lanes) * kVector;
      Float8 sum{};
      for (int pixel = 0; pixel < pixels; ++pixel) {
        const Float8 x = load8(src + first + std::int64_t{pixel} * channels);
        const Float8 d = load8(d_dst + first + std::int64_t{pixel} * channels);
        PACELINE_UNROLL
        for (int k = 0; k < kVector; ++k) sum.value[k] += x.value[k] * d.value[k];
      }
      store8(sum, d_factor + v * kVector);
    }
  }
};

}  // namespace paceline::engine::cuda
