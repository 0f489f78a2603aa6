#pragma once

/// Kernels of batch normalisation, forward pass. The backward pass is in batch_norm_backward.h.
///
///     training     BatchNormSums -> BatchNormStatistics -> BatchNormApply
///     synchronised BatchNormSums -> SumFold -> sums over workers (and shards) -> BatchNormStatistics -> ...
///     evaluation   BatchNormRunning -> BatchNormApply with one group
///
/// A group is consecutive samples that share statistics: the whole batch (local, synchronised), or a part of
/// it (ghost). The shards of a synchronised batch are groups in BatchNormSums only.
///
/// Shapes   src, dst, residual [groups * rows][channels] in storage T; rows = samples of a group * H * W;
///          channels are padded to a multiple of 8, and the first `used` of them belong to the op; padding
///          becomes 0

#include <cmath>

#include "engine/cuda/kernels/columns.h"

namespace paceline::engine::cuda {

/// The fp32 numbers of each channel that apply and backward read: value = (src - mean) * scale + bias. All
/// are 0 in padding. BatchNormStatistics or BatchNormRunning writes them.
struct BatchNormParameters {
  const float* values;  ///< [groups][3][channels]: mean, scale = weight / deviation, bias
  [[nodiscard]] PACELINE_HD const float* mean(int group, int channels) const {
    return values + std::int64_t{group} * 3 * channels;
  }
  [[nodiscard]] PACELINE_HD const float* scale(int group, int channels) const {
    return mean(group, channels) + channels;
  }
  [[nodiscard]] PACELINE_HD const float* bias(int group, int channels) const {
    return mean(group, channels) + 2 * channels;
  }
};

/// Sums src and its squares in each block. A thread adds its few rows in fp32, after subtracting the block's
/// first row so that a large mean costs no digits; further sums are in double.
///
/// Cost   reads src once
template <typename T>
struct BatchNormSums {
  Columns columns;  ///< Columns::for_sums
  const T* src;
  double* partial;  ///< [groups][columns.row_blocks][2][channels]

  [[nodiscard]] Grid grid() const { return columns.grid(BlockSums<2>::shared_bytes(columns)); }
  [[nodiscard]] PACELINE_HD int phases() const { return 2; }
  PACELINE_HD void run(int phase, const ThreadIndex& at, float* shared) const {
    const Columns::Part part = columns.part(at);
    phase == 0 ? add_rows(part, at, shared) : write(part, at, shared);
  }

 private:
  [[nodiscard]] PACELINE_HD const T* block_row(const Columns::Part& part) const {
    return src + (part.first - part.row_thread) * columns.channels;
  }
  PACELINE_HD void add_rows(const Columns::Part& part, const ThreadIndex& at, float* shared) const {
    Float8 sum{}, squares{};
    if (part.is_inside && part.first - part.row_thread < part.end) {
      const Float8 shift = load8(block_row(part) + part.channel);
      for_each_row<kRowsAtOnce<T, 1>>(
          part, [&](std::int64_t row) { return load_raw(src + row * columns.channels + part.channel); },
          [&](std::int64_t, const Raw8<T>& raw) {
            const Float8 x = to_float8(raw);
            PACELINE_UNROLL
            for (int i = 0; i < kVector; ++i) {
              const float d = x.value[i] - shift.value[i];
              sum.value[i] += d;
              squares.value[i] += d * d;
            }
          });
    }
    BlockSums<2>::put(columns, at, 0, sum, shared);
    BlockSums<2>::put(columns, at, 1, squares, shared);
  }
  PACELINE_HD void write(const Columns::Part& part, const ThreadIndex& at, const float* shared) const {
    const int c = part.channel - part.lane * kVector + at.thread;
    if (at.thread >= columns.lanes() * kVector || c >= columns.channels) return;
    const auto count = static_cast<double>(columns.rows_of_block(part.row_block));
    const double shift = count > 0 ? static_cast<double>(load(block_row(part)[c])) : 0;
    const double sum = BlockSums<2>::get(columns, at.thread, 0, shared);
    const double squares = BlockSums<2>::get(columns, at.thread, 1, shared);
    double* to =
        partial + (std::int64_t{part.group} * columns.row_blocks + part.row_block) * 2 * columns.channels;
    to[c] = sum + count * shift;
    to[columns.channels + c] = squares + 2 * shift * sum + count * shift * shift;
  }
};

/// Computes statistics and parameters from the sums, in double precision.
///
/// Cost   a few microseconds, like SumFold
struct BatchNormStatistics {
  /// Sums of blocks; partial == nullptr: `sums` are read instead. parts = columns.row_blocks.
  ColumnFold<2> fold;
  const double* sums;  ///< [groups][2][channels], summed over workers
  int used;            ///< channels that belong to the op
  double count;        ///< number of rows that share statistics, of all workers
  double epsilon;
  const float* weight;  ///< [used]
  const float* bias;    ///< [used]
  float* parameters;    ///< BatchNormParameters::values
  double* statistics;   ///< [groups][3][channels]: mean, 1 / deviation, unbiased variance; for backward

  [[nodiscard]] Grid grid() const { return fold.grid(); }
  [[nodiscard]] PACELINE_HD int phases() const { return 2 * fold.groups; }
  PACELINE_HD void run(int phase, const ThreadIndex& at, float* shared) const {
    auto* doubles = reinterpret_cast<double*>(shared);
    const int group = phase / 2, c = ColumnFold<2>::channel(at);
    if (phase % 2 == 0) {
      if (fold.partial != nullptr) fold.add_parts(group, at, doubles);
      return;
    }
    if (!ColumnFold<2>::is_first(at) || c >= fold.channels) return;
    const double* given = sums + std::int64_t{group} * 2 * fold.channels + c;
    if (fold.partial != nullptr)
      finish(group, c, fold.total(0, at, doubles), fold.total(1, at, doubles));
    else
      finish(group, c, given[0], given[fold.channels]);
  }

 private:
  PACELINE_HD void finish(int group, int c, double sum, double squares) const {
    const bool is_used = c < used;
    const double mean = sum / count;
    double variance = squares / count - mean * mean;
    if (variance < 0) variance = 0;  // rounding; NaN stays
    const double inverse = 1 / std::sqrt(variance + epsilon);
    float* p = parameters + std::int64_t{group} * 3 * fold.channels + c;
    p[0] = is_used ? static_cast<float>(mean) : 0;
    p[fold.channels] = is_used ? static_cast<float>(static_cast<double>(weight[c]) * inverse) : 0;
    p[2 * fold.channels] = is_used ? bias[c] : 0;
    double* s = statistics + std::int64_t{group} * 3 * fold.channels + c;
    s[0] = is_used ? mean : 0;
    s[fold.channels] = is_used ? inverse : 0;
    // With a single element there is no unbiased variance; the biased one (zero) stands in.
    s[2 * fold.channels] = is_used ? variance * (count > 1 ? count / (count - 1) : 1) : 0;
  }
};

/// Computes the parameters for evaluation, and for a frozen batch norm, from running statistics.
struct BatchNormRunning {
  int channels;
  int used;
  double epsilon;
  const float* weight;        ///< [used]
  const float* bias;          ///< [used]
  const float* running_mean;  ///< [used]
  const float* running_var;   ///< [used]
  float* parameters;          ///< [3][channels]
  double* statistics;         ///< [3][channels], as BatchNormStatistics writes them, for backward; null: none

  [[nodiscard]] Grid grid() const { return grid_for(channels); }
  PACELINE_HD void run(const ThreadIndex& at) const {
    for (std::int64_t c = at.global(); c < channels; c += at.global_count()) {
      const bool is_used = c < used;
      const double variance = is_used ? static_cast<double>(running_var[c]) : 0;
      const double deviation = std::sqrt(variance + epsilon);
      parameters[c] = is_used ? running_mean[c] : 0;
      parameters[channels + c] = is_used ? static_cast<float>(static_cast<double>(weight[c]) / deviation) : 0;
      parameters[2 * channels + c] = is_used ? bias[c] : 0;
      if (statistics == nullptr) continue;
      statistics[c] = static_cast<double>(parameters[c]);
      statistics[channels + c] = is_used ? 1 / deviation : 0;
      statistics[2 * channels + c] = variance;
    }
  }
};

/// dst = (src - mean) * scale + bias, plus the residual if there is one, then ReLU if `relu`. Computed in
/// fp32, rounded once. dst may be src or residual.
///
/// Cost   reads src (and residual) once, writes dst once
template <typename T>
struct BatchNormApply {
  Columns columns;  ///< Columns::for_rows
  const T* src;
  const T* residual;  ///< null: none
  T* dst;
  BatchNormParameters parameters;
  bool relu;

  [[nodiscard]] Grid grid() const { return columns.grid(); }
  PACELINE_HD void run(const ThreadIndex& at) const {
    const Columns::Part part = columns.part(at);
    if (!part.is_inside || part.first >= part.end) return;
    const Float8 mean = load8(parameters.mean(part.group, columns.channels) + part.channel);
    const Float8 scale = load8(parameters.scale(part.group, columns.channels) + part.channel);
    const Float8 bias = load8(parameters.bias(part.group, columns.channels) + part.channel);
    struct Pair {
      Raw8<T> src, residual;
    };
    for_each_row<kRowsAtOnce<T, 2>>(
        part,
        [&](std::int64_t row) {
          const std::int64_t i = row * columns.channels + part.channel;
          Pair pair{load_raw(src + i), {}};
          if (residual != nullptr) pair.residual = load_raw(residual + i);
          return pair;
        },
        [&](std::int64_t row, const Pair& pair) {
          Float8 x = to_float8(pair.src);
          const Float8 r = to_float8(pair.residual);
          PACELINE_UNROLL
          for (int i = 0; i < kVector; ++i) {
            float value = (x.value[i] - mean.value[i]) * scale.value[i] + bias.value[i];
            if (residual != nullptr) value += r.value[i];
            x.value[i] = relu && value < 0 ? 0 : value;  // NaN stays
          }
          store8(x, dst + row * columns.channels + part.channel);
        });
  }
};

}  // namespace paceline::engine::cuda
