#pragma once

/// A TileWindow says which pixels of one image (`from`) the pixels of another (`to`) are computed from. The
/// bf16 kernels of all directions use it.
///
/// A kernel goes over the rows of `to` in bands. It packs each row of `from` once, into a ring buffer: row r
/// goes to slot r % ring(band).

#include <algorithm>
#include <cstdint>

#include "engine/cpu/conv/kernel.h"
#include "engine/cpu/parallel.h"

namespace paceline::engine::cpu {

struct TileWindow {
  graph::Shape from, to;  ///< forward and d_weight: src and dst; d_src: dst and src
  int kernel_height = 1, kernel_width = 1, stride = 1, padding = 0;
  bool is_rotated = false;  ///< d_src: forward has a window over `to` for each pixel of `from`
  /// Pixels of the stored image from one pixel of `from` to the next. Above 1 only for 1x1 kernels with a
  /// stride, where `from` has just the pixels that are read.
  int step = 1;
  graph::Shape stored;  ///< `from` as it is stored

  [[nodiscard]] int taps() const { return kernel_height * kernel_width; }
  /// All output and input channels, as forward names them.
  [[nodiscard]] WeightTile all_weights() const {
    return {.outs = {.begin = 0, .end = is_rotated ? from.channels : to.channels},
            .ins = {.begin = 0, .end = is_rotated ? to.channels : from.channels}};
  }
  /// The row (or column) of `from` that row (or column) `to_at` of `to` reads with tap `tap`. `size`: rows
  /// (or columns) of `from`. -1 if it lies outside the image or between strides.
  [[nodiscard]] int at(int to_at, int tap, int size) const;
  /// The rows of `from` that these rows of `to` read, as one range.
  [[nodiscard]] Range rows_read(Range rows) const;
  /// The most rows of `from` that a band of `band` rows reads, if the rows of `to` are divided into `parts`
  /// ranges and bands are counted from the start of each. (Where a band starts matters: strides and edges.)
  [[nodiscard]] int ring(int band, int parts = 1) const;
  /// The height of the largest band that takes at most `bytes`: `bytes_from_row` for each row that it reads
  /// and `bytes_to_row` for each row that it writes. At least 1.
  [[nodiscard]] int band(std::int64_t bytes_from_row, std::int64_t bytes_to_row, std::int64_t bytes) const;

  // In elements of the stored image.
  [[nodiscard]] std::int64_t sample_stride() const { return stored.elements(); }
  [[nodiscard]] std::int64_t row_stride() const {
    return std::int64_t{1} * step * stored.width * stored.channels;
  }
  [[nodiscard]] std::int64_t pixel_stride() const { return std::int64_t{1} * step * stored.channels; }
};

/// The window of `shape` in `direction`. A dense layer has a window as large as the image.
[[nodiscard]] TileWindow tile_window(const ConvShape& shape, Direction direction);

/// Some rows of `to`, for some samples.
struct Band {
  Range rows;
  int first = 0, samples = 0;  ///< the first sample, and how many
};

/// Calls `visit(band, packed)` for each band of `height` rows in `rows`, in order. `packed`: the rows of
/// `from` that this band reads and no earlier band has read, which the kernel must pack now.
template <typename Visit>
void for_each_band(const TileWindow& window, Range rows, int height, int first, int samples,
                   const Visit& visit) {
  std::int64_t end_of_packed = 0;
  for (std::int64_t y = rows.begin; y < rows.end; y += height) {
    const Band band{
        .rows = {.begin = y, .end = std::min(y + height, rows.end)}, .first = first, .samples = samples};
    Range packed = window.rows_read(band.rows);
    packed.begin = std::max(end_of_packed, packed.begin);
    end_of_packed = std::max(end_of_packed, packed.end);
    visit(band, packed);
  }
}

}  // namespace paceline::engine::cpu
