#pragma once

/// The kernel that converts a batch of images from the host's form (fp32, unpadded) to the form that the
/// first layer reads.

#include "engine/cuda/kernels/vector.h"

namespace paceline::engine::cuda {

/// dst[pixel][padded] = src[pixel][channels], 0 in padding and in pixels from `filled` on (if the batch is
/// not full).
///
/// Shapes   src [filled][channels] fp32, pixels = N * H * W; dst [pixels][padded] in storage T
/// Cost     reads src once, writes dst once
template <typename T>
struct InputImages {
  const float* src;
  T* dst;
  std::int64_t pixels;
  std::int64_t filled;  ///< pixels of src
  int channels;
  int padded;

  [[nodiscard]] Grid grid() const { return grid_for(pixels * (padded / kVector)); }
  [[nodiscard]] PACELINE_HD int phases() const { return 1; }
  PACELINE_HD void run(int, const ThreadIndex& at, float*) const {
    const int vectors = padded / kVector;
    for (std::int64_t i = at.global(); i < pixels * vectors; i += at.global_count()) {
      const std::int64_t pixel = i / vectors;
      const int first = static_cast<int>(i % vectors) * kVector;
      Float8 values{};
      PACELINE_UNROLL
      for (int k = 0; k < kVector; ++k)
        if (first + k < channels && pixel < filled) values.value[k] = src[pixel * channels + first + k];
      store8(values, dst + i * kVector);
    }
  }
};

}  // namespace paceline::engine::cuda
