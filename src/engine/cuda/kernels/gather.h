#pragma once

/// The images of a step out of those that the device keeps: what data::Augment::show does, for a whole batch.

#include "base/sample_draw.h"
#include "engine/cuda/kernels/vector.h"

namespace paceline::engine::cuda {

/// dst[n][y][x][c] = byte_values[c][byte], of the byte that draws[n] shows there: of the stored image at its
/// index, moved and mirrored; beyond the image's edge 0, or the byte that is mirrored at that edge. Values
/// are looked up, never computed: they are the host's, bit for bit. 0 in padding and in samples from
/// `samples` on (of a batch that is not full).
///
/// Shapes   stored uint8 [images][height][width][channels], byte_values [channels][256], draws [samples];
///          dst [pixels][padded] in storage T, pixels = N * height * width
/// Requires a draw that reflects moves by less than an image
/// Cost     reads a byte a value, writes dst once
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
  [[nodiscard]] PACELINE_HD int phases() const { return 1; }
  PACELINE_HD void run(int, const ThreadIndex& at, float*) const {
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
  /// Row or column `i` of an image that is mirrored at its first and last; i reaches less than `size` over.
  PACELINE_HD static int reflected(int i, int size) {
    const int below = i < 0 ? -i : i;
    return below < size ? below : 2 * size - 2 - below;
  }
  /// The pixel that `draw` shows at `place` = y * width + x; null: beyond the image.
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
