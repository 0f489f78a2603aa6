#pragma once

/// The kernel of pad, in both directions: the gradient is the pad by the negative numbers.

#include "engine/cuda/kernels/kernel.h"

namespace paceline::engine::cuda {

/// An image as it lies in memory, [height][width][padded], of which `channels` are used.
struct PaddedImage {
  int height, width, channels, padded;
};

/// to = `from`, whose first element lies at (row, column, channel) of `to`; 0 where there is none.
///
/// Cost     writes each element of `to`, and reads what is kept, one by one
template <typename T>
struct PlaceImage {
  int samples;
  const T* from;
  PaddedImage from_image;
  T* to;
  PaddedImage to_image;
  int row, column, channel;  ///< may be negative

  [[nodiscard]] PACELINE_HD std::int64_t elements() const {
    return std::int64_t{samples} * to_image.height * to_image.width * to_image.padded;
  }
  [[nodiscard]] Grid grid() const { return grid_for(elements()); }
  PACELINE_HD void run(const ThreadIndex& at) const {
    for (std::int64_t i = at.global(); i < elements(); i += at.global_count()) {
      const std::int64_t pixel = i / to_image.padded, line = pixel / to_image.width;
      const std::int64_t k = i % to_image.padded, c = k - channel;
      const std::int64_t x = pixel % to_image.width - column, y = line % to_image.height - row;
      const std::int64_t sample = line / to_image.height;
      const bool is_there = k < to_image.channels && c >= 0 && c < from_image.channels && x >= 0 &&
                            x < from_image.width && y >= 0 && y < from_image.height;
      if (is_there)
        to[i] = from[((sample * from_image.height + y) * from_image.width + x) * from_image.padded + c];
      else
        store(0.0f, to[i]);
    }
  }
};

}  // namespace paceline::engine::cuda
