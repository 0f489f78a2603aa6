#pragma once

/// The kernels that make a batch: InputImages from the host's images (below), and the one that makes it from
/// images that the device keeps, with crop, shift and mirroring. It does for a batch what
/// data::Augment::show() does for one image.

#include "base/sample_draw.h"
#include "engine/cuda/kernels/kernel.h"

namespace paceline::engine::cuda {

// The kernel that converts a batch of images from the host's form (fp32, unpadded) to the form that the
// first layer reads.

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
  PACELINE_HD void run(const ThreadIndex& at) const {
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

/// dst[n][y][x][c] = byte_values[c][byte], where `byte` is that of stored image draws[n].index after shifting
/// and mirroring. Beyond the image's edge, byte is 0, or the byte reflected at that edge (draws[n].reflects).
/// The values come from a table that the host made, so they equal the host's bit for bit. dst is 0 in padding
/// and in samples from `samples` on (if the batch is not full).
///
/// Shapes   stored uint8 [images][height][width][channels], byte_values [channels][256], draws [samples];
///          dst [pixels][padded] in storage T, pixels = N * height * width
/// Requires a draw that reflects shifts by less than the image's size
/// Cost     reads one byte for each value, writes dst once
template <typename T>
struct GatherImages {
  const std::uint8_t* stored;
  const float* byte_values;
  const base::SampleDraw* draws;
  T* dst;
  std::int64_t pixels;
  int samples;
  int height, width;
  int channels;
  int padded;

  [[nodiscard]] Grid grid() const { return grid_for(pixels * (padded / kVector)); }
  PACELINE_HD void run(const ThreadIndex& at) const {
    const int vectors = padded / kVector, area = height * width;
    for (std::int64_t i = at.global(); i < pixels * vectors; i += at.global_count()) {
      const std::int64_t pixel = i / vectors;
      const int first = static_cast<int>(i % vectors) * kVector;
      const std::int64_t sample = pixel / area;
      Float8 values{};
      if (sample < samples) {
        const std::uint8_t* shown = source(draws[sample], static_cast<int>(pixel % area));
        PACELINE_UNROLL
        for (int k = 0; k < kVector; ++k)
          if (first + k < channels) {
            const int byte = shown == nullptr ? 0 : shown[first + k];
            values.value[k] = byte_values[(first + k) * 256 + byte];
          }
      }
      store8(values, dst + i * kVector);
    }
  }

 private:
  /// Row or column `i` of an image that is reflected at its first and last row or column; -size < i < 2 *
  /// size - 1.
  PACELINE_HD static int reflected(int i, int size) {
    const int below = i < 0 ? -i : i;
    return below < size ? below : 2 * size - 2 - below;
  }
  /// The stored pixel that `draw` shows at `place` = y * width + x; null if it is beyond the image.
  [[nodiscard]] PACELINE_HD const std::uint8_t* source(const base::SampleDraw& draw, int place) const {
    const int column = draw.is_mirrored != 0 ? width - 1 - place % width : place % width;
    int y = place / width + draw.shift_y, x = column + draw.shift_x;
    if (draw.reflects != 0) {
      y = reflected(y, height);
      x = reflected(x, width);
    } else if (y < 0 || y >= height || x < 0 || x >= width) {
      return nullptr;
    }
    return stored + ((std::int64_t{draw.index} * height + y) * width + x) * channels;
  }
};

}  // namespace paceline::engine::cuda
