#pragma once

/// Kernels that fill, copy and add flat arrays of floats, for base::Memory on a device. Arrays need no
/// alignment.
///
/// Cost   each input is read once, dst written once

#include "engine/cuda/kernels/kernel.h"

namespace paceline::engine::cuda {

struct ArrayFill {
  float* dst;
  std::int64_t count;
  float value;

  [[nodiscard]] Grid grid() const { return grid_for(count); }
  [[nodiscard]] PACELINE_HD int phases() const { return 1; }
  PACELINE_HD void run(int, const ThreadIndex& at, float*) const {
    for (std::int64_t i = at.global(); i < count; i += at.global_count()) dst[i] = value;
  }
};

struct ArrayCopy {
  const float* src;
  float* dst;
  std::int64_t count;

  [[nodiscard]] Grid grid() const { return grid_for(count); }
  [[nodiscard]] PACELINE_HD int phases() const { return 1; }
  PACELINE_HD void run(int, const ThreadIndex& at, float*) const {
    for (std::int64_t i = at.global(); i < count; i += at.global_count()) dst[i] = src[i];
  }
};

/// dst = left + right; dst may be left or right.
struct ArrayAdd {
  const float* left;
  const float* right;
  float* dst;
  std::int64_t count;

  [[nodiscard]] Grid grid() const { return grid_for((count + 3) / 4); }
  [[nodiscard]] PACELINE_HD int phases() const { return 1; }
  PACELINE_HD void run(int, const ThreadIndex& at, float*) const {
    const std::int64_t step = at.global_count();
    std::int64_t i = at.global();
    for (; i + 3 * step < count; i += 4 * step) {  // eight loads in flight
      float a[4], b[4];
      PACELINE_UNROLL
      for (int k = 0; k < 4; ++k) {
        a[k] = left[i + k * step];
        b[k] = right[i + k * step];
      }
      PACELINE_UNROLL
      for (int k = 0; k < 4; ++k) dst[i + k * step] = a[k] + b[k];
    }
    for (; i < count; i += step) dst[i] = left[i] + right[i];
  }
};

/// One level of the tree of base/summation_tree.h over `parts` arrays; part p is at first + p * stride. For
/// each p that is a multiple of 2 * distance, adds the sum at part p + distance to the sum at part p. The
/// last level writes the sum of all parts to `dst`.
struct ArrayTreeLevel {
  float* first;
  float* dst;
  std::int64_t stride, count;
  int parts, distance;

  [[nodiscard]] Grid grid() const { return grid_for(count); }
  [[nodiscard]] PACELINE_HD int phases() const { return 1; }
  PACELINE_HD void run(int, const ThreadIndex& at, float*) const {
    const bool is_last = 2 * distance >= parts;
    for (std::int64_t i = at.global(); i < count; i += at.global_count())
      for (int into = 0; into + distance < parts; into += 2 * distance) {
        float* const left = first + into * stride + i;
        const float sum = left[0] + left[distance * stride];
        *(is_last ? dst + i : left) = sum;
      }
  }
};

}  // namespace paceline::engine::cuda
