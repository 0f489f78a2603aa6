#pragma once

/// Kernels for the bias of a convolution or dense layer: BiasAdd adds it to the output, BiasGradientSums and
/// BiasGradient compute its gradient.
///
/// Shapes   values, dst, d_dst [rows][channels] in storage T, rows = N * P * Q, channels padded to a multiple
///          of 8; bias, d_bias [used] fp32. Padding stays 0.

#include "engine/cuda/kernels/columns.h"

namespace paceline::engine::cuda {

/// dst = src + bias, then ReLU if `relu`; dst may be src.
///
/// Cost   reads src once, writes dst once
template <typename T>
struct BiasAdd {
  Columns columns;  ///< Columns::for_rows, one group
  const T* src;
  T* dst;
  const float* bias;
  int used;
  bool relu;

  [[nodiscard]] Grid grid() const { return columns.grid(); }
  [[nodiscard]] PACELINE_HD int phases() const { return 1; }
  PACELINE_HD void run(int, const ThreadIndex& at, float*) const {
    const Columns::Part part = columns.part(at);
    if (!part.is_inside) return;
    Float8 b{};
    PACELINE_UNROLL
    for (int i = 0; i < kVector; ++i)
      if (part.channel + i < used) b.value[i] = bias[part.channel + i];
    for_each_row<kRowsAtOnce<T, 1>>(
        part, [&](std::int64_t row) { return load_raw(src + row * columns.channels + part.channel); },
        [&](std::int64_t row, const Raw8<T>& raw) {
          Float8 x = to_float8(raw);
          PACELINE_UNROLL
          for (int i = 0; i < kVector; ++i) {
            const float value = x.value[i] + b.value[i];
            x.value[i] = relu && value < 0 ? 0 : value;  // NaN stays
          }
          store8(x, dst + row * columns.channels + part.channel);
        });
  }
};

/// Sums d_dst in each block, after the mask of the ReLU after the layer if there is one.
///
/// Cost   reads d_dst (and dst) once, writes d_masked if it is not null
template <typename T>
struct BiasGradientSums {
  Columns columns;  ///< Columns::for_sums; groups: shards, each with its own sums
  const T* d_dst;
  const T* dst;     ///< the output behind the ReLU; null: no ReLU
  T* d_masked;      ///< receives the masked gradient for the layer's backward pass; may be d_dst or null
  double* partial;  ///< [groups][columns.row_blocks][channels]

  [[nodiscard]] Grid grid() const { return columns.grid(BlockSums<1>::shared_bytes(columns)); }
  [[nodiscard]] PACELINE_HD int phases() const { return 2; }
  PACELINE_HD void run(int phase, const ThreadIndex& at, float* shared) const {
    const Columns::Part part = columns.part(at);
    if (phase == 0) return add_rows(part, shared);
    const int c = part.channel - part.lane * kVector + at.thread;
    if (at.thread >= columns.lanes() * kVector || c >= columns.channels) return;
    partial[(std::int64_t{part.group} * columns.row_blocks + part.row_block) * columns.channels + c] =
        BlockSums<1>::get(columns, at.thread, 0, shared);
  }

 private:
  PACELINE_HD void add_rows(const Columns::Part& part, float* shared) const {
    struct Pair {
      Raw8<T> d_dst, dst;
    };
    Float8 sum{};
    if (part.is_inside)
      for_each_row<kRowsAtOnce<T, 2>>(
          part,
          [&](std::int64_t row) {
            const std::int64_t i = row * columns.channels + part.channel;
            Pair pair{load_raw(d_dst + i), {}};
            if (dst != nullptr) pair.dst = load_raw(dst + i);
            return pair;
          },
          [&](std::int64_t row, const Pair& pair) {
            Float8 g = to_float8(pair.d_dst);
            const Float8 y = to_float8(pair.dst);
            PACELINE_UNROLL
            for (int i = 0; i < kVector; ++i) {
              if (dst != nullptr && !(y.value[i] > 0)) g.value[i] = 0;
              sum.value[i] += g.value[i];
            }
            if (d_masked != nullptr) store8(g, d_masked + row * columns.channels + part.channel);
          });
    BlockSums<1>::put(columns, part, 0, sum, shared);
  }
};

/// d_bias[c] = the sum of the group's partial sums.
struct BiasGradient {
  ColumnFold<1> fold;  ///< parts: columns.row_blocks
  int used;
  float* d_bias;        ///< of group 0
  std::int64_t stride;  ///< from a group's d_bias to the next one's

  [[nodiscard]] Grid grid() const { return fold.grid(); }
  [[nodiscard]] PACELINE_HD int phases() const { return 2 * fold.groups; }
  PACELINE_HD void run(int phase, const ThreadIndex& at, float* shared) const {
    auto* doubles = reinterpret_cast<double*>(shared);
    const int group = phase / 2, c = ColumnFold<1>::channel(at);
    if (phase % 2 == 0) return fold.add_parts(group, at, doubles);
    if (ColumnFold<1>::is_first(at) && c < used)
      d_bias[group * stride + c] = static_cast<float>(fold.total(0, at, doubles));
  }
};

}  // namespace paceline::engine::cuda
