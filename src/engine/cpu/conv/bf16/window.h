#pragma once

/// Which pixels of one image the windows of another one read: what the bf16 kernels of all directions share.
///
/// A kernel goes over the rows of `to` in bands. The rows of `from` that it reads are packed once each, into
/// a ring: row r lies in slot r % ring(band).

#include <algorithm>
#include <cstdint>

#include "engine/cpu/conv/kernel.h"
#include "engine/cpu/parallel.h"

namespace paceline::engine::cpu {

struct TileWindow {
  graph::Shape from, to;  ///< forward and d_weight: src and dst; d_src: dst and src
  int kernel_height = 1, kernel_width = 1, stride = 1, padding = 0;
  bool is_rotated = false;  ///< d_src: `to` has the pixels that the windows at `from` had read
  /// Pixels of the stored image from one of `from` to the next: 1x1 kernels see only those that they read.
  int step = 1;
  graph::Shape stored;  ///< `from` as it is stored

  [[nodiscard]] int taps() const { return kernel_height * kernel_width; }
  /// Outputs and inputs of the forward product.
  [[nodiscard]] WeightTile all_weights() const {
    return {.outs = {.begin = 0, .end = is_rotated ? from.channels : to.channels},
            .ins = {.begin = 0, .end = is_rotated ? to.channels : from.channels}};
  }
  /// The row (or column) of `from`, which has `size` of them, under a window's tap; -1 outside the image or
  /// between strides.
  [[nodiscard]] int at(int to_at, int tap, int size) const;
  /// From the first to behind the last row of `from` under the windows of these rows of `to`.
  [[nodiscard]] Range rows_read(Range rows) const;
  /// Rows that a band of `band` rows reads at most, where bands are counted from the first row of each of
  /// `parts` parts: strides and edges decide what one reads that begins elsewhere.
  [[nodiscard]] int ring(int band, int parts = 1) const;
  /// The most rows of `to` for a band that takes at most `bytes`; at least one.
  [[nodiscard]] int band(std::int64_t bytes_from_row, std::int64_t bytes_to_row, std::int64_t bytes) const;

  // In elements of the stored image.
  [[nodiscard]] std::int64_t sample_stride() const { return stored.elements(); }
  [[nodiscard]] std::int64_t row_stride() const {
    return std::int64_t{1} * step * stored.width * stored.channels;
  }
  [[nodiscard]] std::int64_t pixel_stride() const { return std::int64_t{1} * step * stored.channels; }
};

[[nodiscard]] TileWindow tile_window(const ConvShape& shape, Direction direction);

/// Rows of `to` of some samples.
struct Band {
  Range rows;
  int first = 0, samples = 0;  ///< the first sample, and how many
};

/// Calls `visit(band, packed)` for each band of `height` rows of `rows`, from the first to the last.
/// `packed`: the rows of `from` that this band reads and none before it did.
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
