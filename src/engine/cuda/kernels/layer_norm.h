#pragma once

/// Kernels of layer norm, and of learned factors of the channels.
///
///     forward   LayerNormForward; ScaleChannels
///     backward  RowGradientSums -> RowGradients (the parameters), then LayerNormGradient or ScaleChannels
///               (d_src, which may lie in d_dst's memory)
///
/// Shapes   src, dst, d_src, d_dst [rows][channels] in storage T, rows = N * H * W; channels are padded to a
///          multiple of 8, and the first `used` of them belong to the op; padding stays 0. weight, bias
///          [used] fp32. statistics [rows][2] fp32: mean, 1 / deviation

#include <cmath>

#include "engine/cuda/kernels/columns.h"

namespace paceline::engine::cuda {

/// Several neighbouring threads share a row.
struct RowThreads {
  std::int64_t rows;
  int channels;

  /// A power of two.
  [[nodiscard]] PACELINE_HD int lanes() const {
    int lanes = 1;
    while (lanes < 32 && 2 * lanes <= channels / kVector) lanes *= 2;
    return lanes;
  }
  [[nodiscard]] Grid grid(int shared_floats) const {
    const int of_block = kMostThreads / lanes();
    return {.blocks = static_cast<int>((rows + of_block - 1) / of_block),
            .threads = kMostThreads,
            .shared_bytes = shared_floats * kMostThreads * static_cast<int>(sizeof(float))};
  }
  [[nodiscard]] PACELINE_HD std::int64_t row(const ThreadIndex& at) const { return at.global() / lanes(); }
  /// use(first of 8 channels) for each of the thread's vectors.
  template <typename Use>
  PACELINE_HD void for_each(const ThreadIndex& at, const Use& use) const {
    for (int c = at.thread % lanes() * kVector; c < channels; c += lanes() * kVector) use(c);
  }
  /// The sum of what the row's threads put at shared[thread].
  [[nodiscard]] PACELINE_HD float total(const ThreadIndex& at, const float* shared) const {
    const int first = at.thread / lanes() * lanes();
    float sum = 0;
    for (int i = first; i < first + lanes(); ++i) sum += shared[i];
    return sum;
  }
};

/// Eight of the parameters; 0 in padding.
PACELINE_HD Float8 parameters8(const float* parameters, int channel, int used) {
  Float8 values{};
  PACELINE_UNROLL
  for (int i = 0; i < kVector; ++i)
    if (channel + i < used) values.value[i] = parameters[channel + i];
  return values;
}

/// dst = (src - mean) / deviation * weight + bias, for each row by itself.
///
/// Cost   reads src once from memory and twice from the cache, writes dst once
template <typename T>
struct LayerNormForward {
  RowThreads rows;
  int used;
  const T* src;
  T* dst;
  const float* weight;
  const float* bias;
  float epsilon;
  float* statistics;  ///< null: not stored

  [[nodiscard]] Grid grid() const { return rows.grid(2); }
  [[nodiscard]] PACELINE_HD int phases() const { return 3; }
  PACELINE_HD void run(int phase, const ThreadIndex& at, float* shared) const {
    const std::int64_t row = rows.row(at);
    if (row >= rows.rows) return;
    const T* const from = src + row * rows.channels;
    if (phase == 0) return add_elements(from, at, shared);
    const float mean = rows.total(at, shared) / static_cast<float>(used);
    if (phase == 1) return add_squares(from, mean, at, shared + kMostThreads);
    const float variance = rows.total(at, shared + kMostThreads) / static_cast<float>(used);
    const float inverse = 1 / std::sqrt(variance + epsilon);
    rows.for_each(at, [&](int c) {
      Float8 x = load8(from + c);
      const Float8 w = parameters8(weight, c, used), b = parameters8(bias, c, used);
      PACELINE_UNROLL
      for (int i = 0; i < kVector; ++i)
        x.value[i] = c + i < used ? (x.value[i] - mean) * inverse * w.value[i] + b.value[i] : 0;
      store8(x, dst + row * rows.channels + c);
    });
    if (statistics == nullptr || at.thread % rows.lanes() != 0) return;
    statistics[2 * row] = mean;
    statistics[2 * row + 1] = inverse;
  }

 private:
  PACELINE_HD void add_elements(const T* from, const ThreadIndex& at, float* shared) const {
    float sum = 0;
    rows.for_each(at, [&](int c) {
      const Float8 x = load8(from + c);
      PACELINE_UNROLL
      for (int i = 0; i < kVector; ++i) sum += x.value[i];
    });
    shared[at.thread] = sum;
  }
  PACELINE_HD void add_squares(const T* from, float mean, const ThreadIndex& at, float* shared) const {
    float sum = 0;
    rows.for_each(at, [&](int c) {
      const Float8 x = load8(from + c);
      PACELINE_UNROLL
      for (int i = 0; i < kVector; ++i) {
        const float d = c + i < used ? x.value[i] - mean : 0;
        sum += d * d;
      }
    });
    shared[at.thread] = sum;
  }
};

/// d_src of a layer norm.
///
/// Cost   reads src and d_dst once from memory and once from the cache, writes d_src once
template <typename T>
struct LayerNormGradient {
  RowThreads rows;
  int used;
  const T* src;
  const T* d_dst;
  T* d_src;  ///< may be d_dst
  const float* weight;
  const float* statistics;

  [[nodiscard]] Grid grid() const { return rows.grid(2); }
  [[nodiscard]] PACELINE_HD int phases() const { return 2; }
  PACELINE_HD void run(int phase, const ThreadIndex& at, float* shared) const {
    const std::int64_t row = rows.row(at);
    if (row >= rows.rows) return;
    const float mean = statistics[2 * row], inverse = statistics[2 * row + 1];
    const float count = static_cast<float>(used);
    const float mean_sum = phase == 0 ? 0 : rows.total(at, shared) / count;
    const float mean_product = phase == 0 ? 0 : rows.total(at, shared + kMostThreads) / count;
    float sum = 0, product = 0;
    rows.for_each(at, [&](int c) {
      const std::int64_t first = row * rows.channels + c;
      const Float8 x = load8(src + first), w = parameters8(weight, c, used);
      Float8 g = load8(d_dst + first);
      PACELINE_UNROLL
      for (int i = 0; i < kVector; ++i) {
        const float normalised = (x.value[i] - mean) * inverse;
        const float own = g.value[i] * w.value[i];
        sum += own;
        product += own * normalised;
        g.value[i] = c + i < used ? (own - mean_sum - normalised * mean_product) * inverse : 0;
      }
      if (phase == 1) store8(g, d_src + first);
    });
    if (phase == 1) return;
    shared[at.thread] = sum;
    shared[kMostThreads + at.thread] = product;
  }
};

/// Sums d_dst, and d_dst times src as the op saw it, over the rows of each block.
///
/// Cost   reads src and d_dst once
template <typename T>
struct RowGradientSums {
  Columns columns;  ///< Columns::for_sums, one group
  const T* src;
  const T* d_dst;
  const float* statistics;  ///< null: src itself is multiplied, not normalised
  double* partial;          ///< [columns.row_blocks][2][channels]

  [[nodiscard]] Grid grid() const { return columns.grid(BlockSums<2>::shared_bytes(columns)); }
  [[nodiscard]] PACELINE_HD int phases() const { return 2; }
  PACELINE_HD void run(int phase, const ThreadIndex& at, float* shared) const {
    const Columns::Part part = columns.part(at);
    if (phase == 0) return add_rows(part, at, shared);
    const int c = part.channel - part.lane * kVector + at.thread;
    if (at.thread >= columns.lanes() * kVector || c >= columns.channels) return;
    double* const to = partial + std::int64_t{2} * part.row_block * columns.channels;
    to[c] = BlockSums<2>::get(columns, at.thread, 0, shared);
    to[columns.channels + c] = BlockSums<2>::get(columns, at.thread, 1, shared);
  }

 private:
  struct Raw {
    Raw8<T> src, d_dst;
    float mean, inverse;
  };
  PACELINE_HD void add_rows(const Columns::Part& part, const ThreadIndex& at, float* shared) const {
    Float8 sum{}, products{};
    if (part.is_inside)
      for_each_row<kRowsAtOnce<T, 2>>(
          part,
          [&](std::int64_t row) {
            const std::int64_t i = row * columns.channels + part.channel;
            Raw raw{load_raw(src + i), load_raw(d_dst + i), 0, 1};
            if (statistics != nullptr) {
              raw.mean = statistics[2 * row];
              raw.inverse = statistics[2 * row + 1];
            }
            return raw;
          },
          [&](std::int64_t, const Raw& raw) {
            const Float8 x = to_float8(raw.src), d = to_float8(raw.d_dst);
            PACELINE_UNROLL
            for (int i = 0; i < kVector; ++i) {
              sum.value[i] += d.value[i];
              products.value[i] += d.value[i] * ((x.value[i] - raw.mean) * raw.inverse);
            }
          });
    BlockSums<2>::put(columns, at, 0, sum, shared);
    BlockSums<2>::put(columns, at, 1, products, shared);
  }
};

/// The gradients of the parameters: d_bias and d_weight are the two sums of the blocks' partial sums.
struct RowGradients {
  ColumnFold<2> fold;  ///< one group; parts: columns.row_blocks
  int used;
  float* d_bias;  ///< null: the op has none
  float* d_weight;

  [[nodiscard]] Grid grid() const { return fold.grid(); }
  [[nodiscard]] PACELINE_HD int phases() const { return 2; }
  PACELINE_HD void run(int phase, const ThreadIndex& at, float* shared) const {
    auto* doubles = reinterpret_cast<double*>(shared);
    const int c = ColumnFold<2>::channel(at);
    if (phase == 0) return fold.add_parts(0, at, doubles);
    if (!ColumnFold<2>::is_first(at) || c >= used) return;
    if (d_bias != nullptr) d_bias[c] = static_cast<float>(fold.total(0, at, doubles));
    d_weight[c] = static_cast<float>(fold.total(1, at, doubles));
  }
};

/// dst = src * weight of the channel; dst may be src.
///
/// Cost   reads src once, writes dst once
template <typename T>
struct ScaleChannels {
  Columns columns;  ///< Columns::for_rows, one group
  int used;
  const T* src;
  T* dst;
  const float* weight;

  [[nodiscard]] Grid grid() const { return columns.grid(); }
  PACELINE_HD void run(const ThreadIndex& at) const {
    const Columns::Part part = columns.part(at);
    if (!part.is_inside) return;
    const Float8 w = parameters8(weight, part.channel, used);
    for_each_row<kRowsAtOnce<T, 1>>(
        part, [&](std::int64_t row) { return load_raw(src + row * columns.channels + part.channel); },
        [&](std::int64_t row, const Raw8<T>& raw) {
          Float8 x = to_float8(raw);
          PACELINE_UNROLL
          for (int i = 0; i < kVector; ++i) x.value[i] *= w.value[i];
          store8(x, dst + row * columns.channels + part.channel);
        });
  }
};

}  // namespace paceline::engine::cuda
