#pragma once

/// Pooling kernels: maximum or mean of each window, and mean of each whole plane. A thread computes 8
/// channels of one pixel. Backward kernels gather: for each source pixel a thread adds the gradients of all
/// windows that contain it, in the order of the windows, and overwrites d_src.
///
/// Shapes   src, d_src [N][H][W][channels], dst, d_dst [N][P][Q][channels] in storage T, channels padded to a
///          multiple of 8; global: dst [N][channels]

#include "engine/cuda/kernels/kernel.h"

namespace paceline::engine::cuda {

/// One axis of a pooling op: from `size` pixels to `positions` windows.
struct PoolAxis {
  int size, positions;
  int kernel, stride, padding;  ///< kernel 0: adaptive windows, see graph::AdaptiveAveragePool

  [[nodiscard]] PACELINE_HD int origin(int window) const {
    return kernel > 0 ? window * stride - padding : static_cast<int>(std::int64_t{window} * size / positions);
  }
  /// The pixels [begin, end) of a window.
  [[nodiscard]] PACELINE_HD int begin(int window) const {
    const int first = origin(window);
    return first < 0 ? 0 : first;
  }
  [[nodiscard]] PACELINE_HD int end(int window) const {
    if (kernel == 0) return static_cast<int>(((window + std::int64_t{1}) * size + positions - 1) / positions);
    const int beyond = origin(window) + kernel;
    return beyond < size ? beyond : size;
  }
  /// What a window adds to an average's divisor: pixels, and the padding if it counts.
  [[nodiscard]] PACELINE_HD int counted(int window, bool count_padding) const {
    if (!count_padding) return end(window) - begin(window);
    const int beyond = origin(window) + kernel, last = size + padding;
    return (beyond < last ? beyond : last) - origin(window);
  }
  /// The windows [first, end) that contain a pixel.
  [[nodiscard]] PACELINE_HD int first_window(int position) const {
    if (kernel == 0) return static_cast<int>(std::int64_t{position} * positions / size);
    // The last start of a window that ends before the position.
    const int reach = position + padding - kernel;
    return reach < 0 ? 0 : reach / stride + 1;
  }
  [[nodiscard]] PACELINE_HD int end_window(int position) const {
    if (kernel == 0) return static_cast<int>(((position + std::int64_t{1}) * positions + size - 1) / size);
    const int end = (position + padding) / stride + 1;
    return end < positions ? end : positions;
  }
};

/// Sizes of a pooling op.
struct PoolShape {
  int samples, channels;
  PoolAxis rows, columns;
  bool count_padding;  ///< an average divides by the window's padding too

  [[nodiscard]] PACELINE_HD int lanes() const { return channels / kVector; }
  [[nodiscard]] PACELINE_HD std::int64_t src_vectors() const {
    return std::int64_t{samples} * rows.size * columns.size * lanes();
  }
  [[nodiscard]] PACELINE_HD std::int64_t dst_vectors() const {
    return std::int64_t{samples} * rows.positions * columns.positions * lanes();
  }
  /// The position of a vector in src or dst: 8 channels (number `lane`) of the pixel (sample, y, x).
  struct Pixel {
    int sample, y, x, lane;
  };
  [[nodiscard]] PACELINE_HD Pixel pixel(std::int64_t vector, int plane_height, int plane_width) const {
    Pixel pixel{};
    pixel.lane = static_cast<int>(vector % lanes());
    const std::int64_t place = vector / lanes();
    pixel.x = static_cast<int>(place % plane_width);
    pixel.y = static_cast<int>(place / plane_width % plane_height);
    pixel.sample = static_cast<int>(place / plane_width / plane_height);
    return pixel;
  }
  [[nodiscard]] PACELINE_HD std::int64_t src_element(const Pixel& of, int y, int x) const {
    return ((std::int64_t{of.sample} * rows.size + y) * columns.size + x) * channels + of.lane * kVector;
  }
  [[nodiscard]] PACELINE_HD std::int64_t dst_element(const Pixel& of, int y, int x) const {
    return ((std::int64_t{of.sample} * rows.positions + y) * columns.positions + x) * channels +
           of.lane * kVector;
  }
  /// The factor of each element of a window's mean.
  [[nodiscard]] PACELINE_HD float share(int p, int q) const {
    return 1.0f / static_cast<float>(std::int64_t{rows.counted(p, count_padding)} *
                                     columns.counted(q, count_padding));
  }
};

/// The maximum of each window. Padding counts as -infinity, and NaN as larger than all numbers. `winner`
/// receives the position of the maximum in its window, row * columns.kernel + column: the first of equal
/// values, or the last NaN.
///
/// Requires  at most 65535 pixels in a window; every window contains an element of src
/// Cost       reads src once from memory (overlapping windows from the cache), writes dst and 2 bytes for
///            each element
template <typename T>
struct MaxPoolForward {
  PoolShape shape;
  const T* src;
  T* dst;
  std::uint16_t* winner;  ///< [N][P][Q][channels]; null: not stored

  [[nodiscard]] Grid grid() const { return grid_for(shape.dst_vectors()); }
  PACELINE_HD void run(const ThreadIndex& at) const {
    for (std::int64_t v = at.global(); v < shape.dst_vectors(); v += at.global_count()) {
      const auto pixel = shape.pixel(v, shape.rows.positions, shape.columns.positions);
      const int top = shape.rows.origin(pixel.y), left = shape.columns.origin(pixel.x);
      const int end_row = shape.rows.end(pixel.y), end_column = shape.columns.end(pixel.x);
      Float8 best{};
      std::uint32_t place[kVector] = {};
      bool is_first = true;
      for (int row = shape.rows.begin(pixel.y); row < end_row; ++row)
        for (int column = shape.columns.begin(pixel.x); column < end_column; ++column) {
          const Float8 x = load8(src + shape.src_element(pixel, row, column));
          PACELINE_UNROLL
          for (int i = 0; i < kVector; ++i)
            // x != x: it is NaN.
            if (is_first || x.value[i] > best.value[i] || x.value[i] != x.value[i]) {
              best.value[i] = x.value[i];
              place[i] = static_cast<std::uint32_t>((row - top) * shape.columns.kernel + column - left);
            }
          is_first = false;
        }
      store8(best, dst + v * kVector);
      if (winner == nullptr) continue;
      Words4 places;
      PACELINE_UNROLL
      for (int i = 0; i < 4; ++i) places.word[i] = place[2 * i] | place[2 * i + 1] << 16;
      store16(places, winner + v * kVector);
    }
  }
};

/// d_src = the sum of d_dst over the windows whose maximum is the element.
///
/// Cost   reads d_dst and winner once from memory, writes d_src once
template <typename T>
struct MaxPoolBackward {
  PoolShape shape;
  const std::uint16_t* winner;
  const T* d_dst;
  T* d_src;

  [[nodiscard]] Grid grid() const { return grid_for(shape.src_vectors()); }
  PACELINE_HD void run(const ThreadIndex& at) const {
    for (std::int64_t v = at.global(); v < shape.src_vectors(); v += at.global_count()) {
      const auto pixel = shape.pixel(v, shape.rows.size, shape.columns.size);
      const int end_p = shape.rows.end_window(pixel.y);
      const int end_q = shape.columns.end_window(pixel.x);
      Float8 sum{};
      for (int p = shape.rows.first_window(pixel.y); p < end_p; ++p)
        for (int q = shape.columns.first_window(pixel.x); q < end_q; ++q) {
          const std::int64_t i = shape.dst_element(pixel, p, q);
          const Float8 d = load8(d_dst + i);
          const Words4 places = load16(winner + i);
          const auto mine = static_cast<std::uint32_t>(
              (pixel.y - shape.rows.origin(p)) * shape.columns.kernel + pixel.x - shape.columns.origin(q));
          PACELINE_UNROLL
          for (int k = 0; k < kVector; ++k)
            if ((places.word[k / 2] >> (k % 2 * 16) & 0xffffu) == mine) sum.value[k] += d.value[k];
        }
      store8(sum, d_src + v * kVector);
    }
  }
};

/// The mean of each window. Padding is zeros.
///
/// Cost   reads src once from memory, writes dst once
template <typename T>
struct AveragePoolForward {
  PoolShape shape;
  const T* src;
  T* dst;

  [[nodiscard]] Grid grid() const { return grid_for(shape.dst_vectors()); }
  PACELINE_HD void run(const ThreadIndex& at) const {
    for (std::int64_t v = at.global(); v < shape.dst_vectors(); v += at.global_count()) {
      const auto pixel = shape.pixel(v, shape.rows.positions, shape.columns.positions);
      const float share = shape.share(pixel.y, pixel.x);
      const int end_row = shape.rows.end(pixel.y), end_column = shape.columns.end(pixel.x);
      Float8 sum{};
      for (int row = shape.rows.begin(pixel.y); row < end_row; ++row)
        for (int column = shape.columns.begin(pixel.x); column < end_column; ++column) {
          const Float8 x = load8(src + shape.src_element(pixel, row, column));
          PACELINE_UNROLL
          for (int i = 0; i < kVector; ++i) sum.value[i] += x.value[i] * share;
        }
      store8(sum, dst + v * kVector);
    }
  }
};

/// d_src = the sum of d_dst over the windows that contain the element, each over what the window counts.
///
/// Cost   reads d_dst once from memory, writes d_src once
template <typename T>
struct AveragePoolBackward {
  PoolShape shape;
  const T* d_dst;
  T* d_src;

  [[nodiscard]] Grid grid() const { return grid_for(shape.src_vectors()); }
  PACELINE_HD void run(const ThreadIndex& at) const {
    for (std::int64_t v = at.global(); v < shape.src_vectors(); v += at.global_count()) {
      const auto pixel = shape.pixel(v, shape.rows.size, shape.columns.size);
      const int end_p = shape.rows.end_window(pixel.y);
      const int end_q = shape.columns.end_window(pixel.x);
      Float8 sum{};
      for (int p = shape.rows.first_window(pixel.y); p < end_p; ++p)
        for (int q = shape.columns.first_window(pixel.x); q < end_q; ++q) {
          const float share = shape.share(p, q);
          const Float8 d = load8(d_dst + shape.dst_element(pixel, p, q));
          PACELINE_UNROLL
          for (int k = 0; k < kVector; ++k) sum.value[k] += d.value[k] * share;
        }
      store8(sum, d_src + v * kVector);
    }
  }
};

/// dst[n][c] = the mean of src[n][...][c].
///
/// Cost   reads src once
template <typename T>
struct GlobalAveragePoolForward {
  int samples, channels, pixels;  ///< pixels: of a plane
  const T* src;
  T* dst;

  [[nodiscard]] std::int64_t vectors() const { return std::int64_t{samples} * (channels / kVector); }
  /// There are few threads: small blocks spread them over the device.
  [[nodiscard]] Grid grid() const {
    return {.blocks = static_cast<int>((vectors() + 63) / 64), .threads = 64, .shared_bytes = 0};
  }
  PACELINE_HD void run(const ThreadIndex& at) const {
    const int lanes = channels / kVector;
    const std::int64_t v = at.global(), sample = v / lanes;
    if (sample >= samples) return;
    const T* from = src + (sample * pixels * lanes + v % lanes) * kVector;
    Float8 sum{};
    PACELINE_UNROLL_4
    for (int i = 0; i < pixels; ++i) {
      const Float8 x = load8(from + std::int64_t{i} * channels);
      PACELINE_UNROLL
      for (int k = 0; k < kVector; ++k) sum.value[k] += x.value[k];
    }
    PACELINE_UNROLL
    for (int k = 0; k < kVector; ++k) sum.value[k] /= static_cast<float>(pixels);
    store8(sum, dst + v * kVector);
  }
};

/// d_src[n][...][c] = d_dst[n][c] / pixels.
///
/// Cost   writes d_src once
template <typename T>
struct GlobalAveragePoolBackward {
  int samples, channels, pixels;
  const T* d_dst;
  T* d_src;

  [[nodiscard]] PACELINE_HD std::int64_t vectors() const {
    return std::int64_t{samples} * pixels * (channels / kVector);
  }
  [[nodiscard]] Grid grid() const { return grid_for(vectors()); }
  PACELINE_HD void run(const ThreadIndex& at) const {
    const int lanes = channels / kVector;
    for (std::int64_t v = at.global(); v < vectors(); v += at.global_count()) {
      const std::int64_t sample = v / lanes / pixels;
      Float8 d = load8(d_dst + (sample * lanes + v % lanes) * kVector);
      PACELINE_UNROLL
      for (int k = 0; k < kVector; ++k) d.value[k] /= static_cast<float>(pixels);
      store8(d, d_src + v * kVector);
    }
  }
};

}  // namespace paceline::engine::cuda
