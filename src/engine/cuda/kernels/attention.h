#pragma once

/// Kernels of attention: softmax(q k^T * scale) v for each head of each sample, without an array of the
/// probabilities (Dao et al., FlashAttention, 2022). A block owns a tile of rows (queries, or keys in
/// AttentionGradientOfKeys) and goes through tiles of the others, which it reads into shared memory.
///
/// Shapes   src, d_src [samples][places][src_channels] with q, k and v one after the other, each of heads *
///          width channels; dst, d_dst [samples][places][dst_channels]; statistics
///          [samples][heads][places][3]: the row's largest scaled product, 1 / its sum of exponentials, and
///          (from AttentionGradientOfQueries on) the mean of the probabilities' gradients

#include <cmath>

#include "engine/cuda/kernels/kernel.h"

namespace paceline::engine::cuda {

struct AttentionShape {
  int samples, places, heads, width;  ///< width: channels of a head
  int src_channels, dst_channels;     ///< with padding
  float scale;

  static constexpr int kMostWidth = 1024;  ///< shared memory has no room for more
  [[nodiscard]] PACELINE_HD int channels() const { return heads * width; }
  /// Rows that a block owns, and those of the others that it has at a time: what fits in shared memory.
  [[nodiscard]] PACELINE_HD int own() const {
    int rows = 32;
    while (rows > 2 && rows * width > 2048) rows /= 2;
    return rows;
  }
  [[nodiscard]] PACELINE_HD int others() const { return own() / 2; }
  [[nodiscard]] PACELINE_HD int own_tiles() const { return (places + own() - 1) / own(); }
  [[nodiscard]] PACELINE_HD int other_tiles() const { return (places + others() - 1) / others(); }
  [[nodiscard]] Grid grid(std::int64_t floats) const {
    return {.blocks = samples * heads * own_tiles(),
            .threads = kMostThreads,
            .shared_bytes = static_cast<int>(4 * floats)};
  }
};

/// The place of a block: its head, and its first own row.
struct AttentionTile {
  int sample, head, first, rows;
  std::int64_t src, dst;  ///< the head's first element of q in the sample, and of the output
  std::int64_t statistics;

  PACELINE_HD AttentionTile(const AttentionShape& shape, int block) {
    head = block / shape.own_tiles() % shape.heads;
    sample = block / shape.own_tiles() / shape.heads;
    first = block % shape.own_tiles() * shape.own();
    rows = shape.places - first < shape.own() ? shape.places - first : shape.own();
    src = std::int64_t{sample} * shape.places * shape.src_channels + head * shape.width;
    dst = std::int64_t{sample} * shape.places * shape.dst_channels + head * shape.width;
    statistics = (std::int64_t{sample} * shape.heads + head) * shape.places;
  }
  /// The number of rows of tile `tile` of the others.
  PACELINE_HD static int others(const AttentionShape& shape, int tile) {
    const int left = shape.places - tile * shape.others();
    return left < shape.others() ? left : shape.others();
  }
};

/// to[row][c] = from[row * stride + c] * scale, for the block's threads together; neighbours read neighbours.
template <typename T>
PACELINE_HD void load_rows(const T* from, int stride, int rows, int width, float scale, float* to, int pitch,
                           const ThreadIndex& at) {
  for (int i = at.thread; i < rows * width; i += at.threads)
    to[i / width * pitch + i % width] = load(from[std::int64_t{i / width} * stride + i % width]) * scale;
}
template <typename T>
PACELINE_HD void store_rows(const float* from, int rows, int width, float scale, T* to, int stride,
                            const ThreadIndex& at) {
  for (int i = at.thread; i < rows * width; i += at.threads)
    store(from[i] * scale, to[std::int64_t{i / width} * stride + i % width]);
}
/// Padding behind the used channels of `rows` rows becomes 0.
template <typename T>
PACELINE_HD void clear_padding(T* row, int rows, int used, int channels, const ThreadIndex& at) {
  const int padding = channels - used;
  for (int i = at.thread; i < rows * padding; i += at.threads)
    store(0.0f, row[std::int64_t{i / padding} * channels + used + i % padding]);
}
PACELINE_HD float dot(const float* a, const float* b, int count) {
  float sum = 0;
  PACELINE_UNROLL_4
  for (int c = 0; c < count; ++c) sum += a[c] * b[c];
  return sum;
}
PACELINE_HD void fill_zero(float* to, int count, const ThreadIndex& at) {
  for (int i = at.thread; i < count; i += at.threads) to[i] = 0;
}

/// The output, and with `statistics` what the backward pass needs.
///
/// Requires  width at most AttentionShape::kMostWidth
/// Cost      reads q once, k and v once for each tile of rows (from the cache), writes dst once
template <typename T>
struct AttentionForward {
  AttentionShape shape;
  const T* src;
  T* dst;
  float* statistics;  ///< null: not wanted

  [[nodiscard]] PACELINE_HD int pitch() const { return shape.width + 1; }  // no two rows in one bank
  [[nodiscard]] Grid grid() const {
    return shape.grid(2 * shape.own() * shape.width + 2 * shape.others() * pitch() +
                      shape.own() * (shape.others() + 3));
  }
  static constexpr int kPhases = 5;  ///< of a tile
  [[nodiscard]] PACELINE_HD int phases() const { return kPhases * shape.other_tiles() + 1; }
  PACELINE_HD void run(int phase, const ThreadIndex& at, float* shared) const {
    const int own = shape.own(), width = shape.width, others = shape.others();
    float* const q = shared;
    float* const sums = q + own * width;
    float* const k = sums + own * width;
    float* const v = k + others * pitch();
    float* const rows = v + others * pitch();
    float* const largest = rows + own * others;
    float* const factor = largest + own;  // of what was summed before
    float* const total = factor + own;
    const AttentionTile tile(shape, at.block);
    const int index = phase / kPhases;
    if (index == shape.other_tiles()) return finish(tile, sums, largest, total, at);
    const int count = AttentionTile::others(shape, index);
    switch (phase % kPhases) {
      case 0: {
        if (index == 0) {
          load_rows(src + tile.src + std::int64_t{tile.first} * shape.src_channels, shape.src_channels,
                    tile.rows, width, shape.scale, q, width, at);
          fill_zero(sums, own * width, at);
          for (int i = at.thread; i < own; i += at.threads) {
            largest[i] = -INFINITY;
            total[i] = 0;
          }
        }
        const T* const key =
            src + tile.src + shape.channels() + std::int64_t{index} * others * shape.src_channels;
        load_rows(key, shape.src_channels, count, width, 1, k, pitch(), at);
        load_rows(key + shape.channels(), shape.src_channels, count, width, 1, v, pitch(), at);
        break;
      }
      case 1:
        for (int i = at.thread; i < tile.rows * count; i += at.threads)
          rows[i / count * others + i % count] = dot(q + i / count * width, k + i % count * pitch(), width);
        break;
      case 2:
        for (int i = at.thread; i < tile.rows; i += at.threads) {
          float most = largest[i];
          for (int j = 0; j < count; ++j) {
            const float x = rows[i * others + j];
            most = x > most || x != x ? x : most;
          }
          factor[i] = expf(largest[i] - most);
          largest[i] = most;
        }
        break;
      case 3:
        for (int i = at.thread; i < tile.rows * count; i += at.threads) {
          float& x = rows[i / count * others + i % count];
          x = expf(x - largest[i / count]);
        }
        break;
      default:
        for (int i = at.thread; i < tile.rows * width; i += at.threads) {
          float sum = sums[i] * factor[i / width];
          for (int j = 0; j < count; ++j) sum += rows[i / width * others + j] * v[j * pitch() + i % width];
          sums[i] = sum;
        }
        for (int i = at.thread; i < tile.rows; i += at.threads) {
          float sum = total[i] * factor[i];
          for (int j = 0; j < count; ++j) sum += rows[i * others + j];
          total[i] = sum;
        }
    }
  }

 private:
  PACELINE_HD void finish(const AttentionTile& tile, const float* sums, const float* largest,
                          const float* total, const ThreadIndex& at) const {
    T* const to = dst + tile.dst + std::int64_t{tile.first} * shape.dst_channels;
    for (int i = at.thread; i < tile.rows * shape.width; i += at.threads) {
      const int row = i / shape.width;
      store(sums[i] / total[row], to[std::int64_t{row} * shape.dst_channels + i % shape.width]);
    }
    if (tile.head == shape.heads - 1)
      clear_padding(to - tile.head * shape.width, tile.rows, shape.channels(), shape.dst_channels, at);
    if (statistics == nullptr) return;
    for (int i = at.thread; i < tile.rows; i += at.threads) {
      float* const kept = statistics + 3 * (tile.statistics + tile.first + i);
      kept[0] = largest[i];
      kept[1] = 1.0f / total[i];
    }
  }
};

/// d_src of q. It also writes the third number of each row's statistics.
///
/// Requires  as AttentionForward
/// Cost      as AttentionForward, and reads dst and d_dst once
template <typename T>
struct AttentionGradientOfQueries {
  AttentionShape shape;
  const T* src;
  const T* dst;
  const T* d_dst;
  float* statistics;
  T* d_src;

  [[nodiscard]] PACELINE_HD int pitch() const { return shape.width + 1; }
  [[nodiscard]] Grid grid() const {
    return shape.grid(3 * shape.own() * shape.width + 2 * shape.others() * pitch() +
                      shape.own() * (shape.others() + 3));
  }
  static constexpr int kPhases = 3;
  [[nodiscard]] PACELINE_HD int phases() const { return kPhases * shape.other_tiles() + 1; }
  PACELINE_HD void run(int phase, const ThreadIndex& at, float* shared) const {
    const int own = shape.own(), width = shape.width, others = shape.others();
    float* const q = shared;
    float* const d = q + own * width;
    float* const sums = d + own * width;
    float* const k = sums + own * width;
    float* const v = k + others * pitch();
    float* const rows = v + others * pitch();
    float* const kept = rows + own * others;  // [own][3]
    const AttentionTile tile(shape, at.block);
    const std::int64_t row = tile.first;
    const int index = phase / kPhases;
    if (index == shape.other_tiles()) {
      store_rows(sums, tile.rows, width, shape.scale, d_src + tile.src + row * shape.src_channels,
                 shape.src_channels, at);
      return;
    }
    const int count = AttentionTile::others(shape, index);
    switch (phase % kPhases) {
      case 0: {
        if (index == 0) {
          load_rows(src + tile.src + row * shape.src_channels, shape.src_channels, tile.rows, width,
                    shape.scale, q, width, at);
          load_rows(d_dst + tile.dst + row * shape.dst_channels, shape.dst_channels, tile.rows, width, 1, d,
                    width, at);
          fill_zero(sums, own * width, at);
          for (int i = at.thread; i < tile.rows; i += at.threads) find_mean(tile, i, kept + 3 * i);
        }
        const T* const key =
            src + tile.src + shape.channels() + std::int64_t{index} * others * shape.src_channels;
        load_rows(key, shape.src_channels, count, width, 1, k, pitch(), at);
        load_rows(key + shape.channels(), shape.src_channels, count, width, 1, v, pitch(), at);
        break;
      }
      case 1:
        for (int i = at.thread; i < tile.rows * count; i += at.threads) {
          const int r = i / count, j = i % count;
          const float p = expf(dot(q + r * width, k + j * pitch(), width) - kept[3 * r]) * kept[3 * r + 1];
          rows[r * others + j] = p * (dot(d + r * width, v + j * pitch(), width) - kept[3 * r + 2]);
        }
        break;
      default:
        for (int i = at.thread; i < tile.rows * width; i += at.threads) {
          float sum = sums[i];
          for (int j = 0; j < count; ++j) sum += rows[i / width * others + j] * k[j * pitch() + i % width];
          sums[i] = sum;
        }
    }
  }

 private:
  /// The mean of the gradients of row i's probabilities, by the probabilities, is d_dst times dst.
  PACELINE_HD void find_mean(const AttentionTile& tile, int i, float* kept) const {
    float* const own = statistics + 3 * (tile.statistics + tile.first + i);
    const std::int64_t at = tile.dst + std::int64_t{tile.first + i} * shape.dst_channels;
    float sum = 0;
    for (int c = 0; c < shape.width; ++c) sum += load(d_dst[at + c]) * load(dst[at + c]);
    own[2] = sum;
    for (int number = 0; number < 3; ++number) kept[number] = own[number];
  }
};

/// d_src of k and v, and of src's padding.
///
/// Requires  AttentionGradientOfQueries ran; otherwise as AttentionForward
/// Cost      as AttentionForward: it goes through the rows of q for each tile of k
template <typename T>
struct AttentionGradientOfKeys {
  AttentionShape shape;
  const T* src;
  const T* d_dst;
  const float* statistics;
  T* d_src;

  [[nodiscard]] PACELINE_HD int pitch() const { return shape.width + 1; }
  [[nodiscard]] Grid grid() const {
    return shape.grid(4 * shape.own() * shape.width + 2 * shape.others() * pitch() +
                      2 * shape.own() * shape.others());
  }
  static constexpr int kPhases = 3;
  [[nodiscard]] PACELINE_HD int phases() const { return kPhases * shape.other_tiles() + 1; }
  PACELINE_HD void run(int phase, const ThreadIndex& at, float* shared) const {
    const int own = shape.own(), width = shape.width, others = shape.others();
    float* const k = shared;
    float* const v = k + own * width;
    float* const d_k = v + own * width;
    float* const d_v = d_k + own * width;
    float* const q = d_v + own * width;
    float* const d = q + others * pitch();
    float* const p = d + others * pitch();
    float* const d_p = p + own * others;
    const AttentionTile tile(shape, at.block);
    const std::int64_t key = tile.src + shape.channels() + std::int64_t{tile.first} * shape.src_channels;
    const std::int64_t value = key + shape.channels();
    const int index = phase / kPhases;
    if (index == shape.other_tiles()) {
      store_rows(d_k, tile.rows, width, 1, d_src + key, shape.src_channels, at);
      store_rows(d_v, tile.rows, width, 1, d_src + value, shape.src_channels, at);
      if (tile.head == shape.heads - 1)
        clear_padding(d_src + key - shape.channels() - tile.head * width, tile.rows, 3 * shape.channels(),
                      shape.src_channels, at);
      return;
    }
    const int count = AttentionTile::others(shape, index);
    const std::int64_t row = std::int64_t{index} * others;
    switch (phase % kPhases) {
      case 0:
        if (index == 0) {
          load_rows(src + key, shape.src_channels, tile.rows, width, 1, k, width, at);
          load_rows(src + value, shape.src_channels, tile.rows, width, 1, v, width, at);
          fill_zero(d_k, 2 * own * width, at);
        }
        load_rows(src + tile.src + row * shape.src_channels, shape.src_channels, count, width, shape.scale, q,
                  pitch(), at);
        load_rows(d_dst + tile.dst + row * shape.dst_channels, shape.dst_channels, count, width, 1, d,
                  pitch(), at);
        break;
      case 1:
        for (int i = at.thread; i < tile.rows * count; i += at.threads) {
          const int j = i / count, r = i % count;
          const float* const kept = statistics + 3 * (tile.statistics + row + r);
          const float own_p = expf(dot(q + r * pitch(), k + j * width, width) - kept[0]) * kept[1];
          p[j * others + r] = own_p;
          d_p[j * others + r] = own_p * (dot(d + r * pitch(), v + j * width, width) - kept[2]);
        }
        break;
      default:
        for (int i = at.thread; i < tile.rows * width; i += at.threads) {
          const int j = i / width, c = i % width;
          float sum_k = d_k[i], sum_v = d_v[i];
          for (int r = 0; r < count; ++r) {
            sum_k += d_p[j * others + r] * q[r * pitch() + c];
            sum_v += p[j * others + r] * d[r * pitch() + c];
          }
          d_k[i] = sum_k;
          d_v[i] = sum_v;
        }
    }
  }
};

}  // namespace paceline::engine::cuda
