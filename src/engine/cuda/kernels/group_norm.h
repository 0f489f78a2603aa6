#pragma once

/// Kernels of group norm. Each sample is a group of rows for the kernels of batch norm:
///
///     forward   BatchNormSums -> GroupNormStatistics -> BatchNormApply
///     backward  BatchNormGradientSums -> GroupNormCoefficients -> BatchNormGradientApply (d_src)
///                                     -> GroupNormGradients (the parameters)
///
/// Shapes   partial [samples][parts][2][channels], as those kernels write it; parts = columns.row_blocks;
///          statistics [samples][groups][2]: mean, 1 / deviation

#include <cmath>

#include "engine/cuda/kernels/columns.h"

namespace paceline::engine::cuda {

/// What the kernels below know of the op. A block belongs to a sample and a group of its channels.
struct GroupNormShape {
  int samples, groups, parts;
  int channels, used;  ///< padded, and those of the op
  std::int64_t pixels;

  static constexpr int kThreads = 64;
  [[nodiscard]] Grid grid() const {
    return {.blocks = samples * groups,
            .threads = kThreads,
            .shared_bytes = 2 * kThreads * static_cast<int>(sizeof(double))};
  }
  [[nodiscard]] PACELINE_HD int channels_of_group() const { return used / groups; }
  [[nodiscard]] PACELINE_HD double elements_of_group() const {
    return static_cast<double>(channels_of_group()) * static_cast<double>(pixels);
  }
  /// Each thread adds its share of the group's partial sums, each times factor(channel).
  template <typename Factor>
  PACELINE_HD void add_parts(const double* partial, const ThreadIndex& at, double* shared,
                             const Factor& factor) const {
    const int sample = at.block / groups, group = at.block % groups;
    double sum = 0, second = 0;
    for (int i = at.thread; i < parts * channels_of_group(); i += kThreads) {
      const int c = group * channels_of_group() + i % channels_of_group();
      const double* from =
          partial + (std::int64_t{sample} * parts + i / channels_of_group()) * 2 * channels + c;
      sum += from[0] * factor(c);
      second += from[channels] * factor(c);
    }
    shared[at.thread] = sum;
    shared[kThreads + at.thread] = second;
  }
  [[nodiscard]] PACELINE_HD double total(int which, const double* shared) const {
    double sum = 0;
    for (int i = 0; i < kThreads; ++i) sum += shared[which * kThreads + i];
    return sum;
  }
  /// write(channel, whether it belongs to the op) for the thread's channels of the group; the last group has
  /// the padding too.
  template <typename Write>
  PACELINE_HD void for_channels(const ThreadIndex& at, const Write& write) const {
    const int group = at.block % groups;
    const int end = group + 1 == groups ? channels : (group + 1) * channels_of_group();
    for (int c = group * channels_of_group() + at.thread; c < end; c += kThreads) write(c, c < used);
  }
};

/// Computes statistics, and the parameters that BatchNormApply reads, in double precision.
struct GroupNormStatistics {
  GroupNormShape shape;
  const double* partial;  ///< of src and its squares
  double epsilon;
  const float* weight;  ///< [used]
  const float* bias;    ///< [used]
  float* parameters;    ///< [samples][3][channels], BatchNormParameters::values
  double* statistics;

  [[nodiscard]] Grid grid() const { return shape.grid(); }
  [[nodiscard]] PACELINE_HD int phases() const { return 2; }
  PACELINE_HD void run(int phase, const ThreadIndex& at, float* memory) const {
    auto* shared = reinterpret_cast<double*>(memory);
    if (phase == 0) return shape.add_parts(partial, at, shared, [](int) { return 1.0; });
    const double mean = shape.total(0, shared) / shape.elements_of_group();
    double variance = shape.total(1, shared) / shape.elements_of_group() - mean * mean;
    if (variance < 0) variance = 0;  // rounding; NaN stays
    const double inverse = 1 / std::sqrt(variance + epsilon);
    float* const to = parameters + std::int64_t{at.block / shape.groups} * 3 * shape.channels;
    shape.for_channels(at, [&](int c, bool is_used) {
      to[c] = is_used ? static_cast<float>(mean) : 0;
      to[shape.channels + c] = is_used ? static_cast<float>(static_cast<double>(weight[c]) * inverse) : 0;
      to[2 * shape.channels + c] = is_used ? bias[c] : 0;
    });
    if (at.thread != 0) return;
    statistics[2 * at.block] = mean;
    statistics[2 * at.block + 1] = inverse;
  }
};

/// Computes the coefficients that BatchNormGradientApply reads.
struct GroupNormCoefficients {
  GroupNormShape shape;
  const double* partial;  ///< of d_dst, and of d_dst * (src - mean)
  const float* weight;    ///< [used]
  const double* statistics;
  float* coefficients;  ///< [samples][2][channels]: slope, offset

  [[nodiscard]] Grid grid() const { return shape.grid(); }
  [[nodiscard]] PACELINE_HD int phases() const { return 2; }
  PACELINE_HD void run(int phase, const ThreadIndex& at, float* memory) const {
    auto* shared = reinterpret_cast<double*>(memory);
    if (phase == 0)
      return shape.add_parts(partial, at, shared, [&](int c) { return static_cast<double>(weight[c]); });
    const double inverse = statistics[2 * at.block + 1];
    const double slope = -inverse * inverse * inverse * shape.total(1, shared) / shape.elements_of_group();
    const double offset = -inverse * shape.total(0, shared) / shape.elements_of_group();
    float* const to = coefficients + std::int64_t{at.block / shape.groups} * 2 * shape.channels;
    shape.for_channels(at, [&](int c, bool is_used) {
      to[c] = is_used ? static_cast<float>(slope) : 0;
      to[shape.channels + c] = is_used ? static_cast<float>(offset) : 0;
    });
  }
};

/// The gradients of the parameters, summed over the samples.
struct GroupNormGradients {
  GroupNormShape shape;
  const double* partial;  ///< of d_dst, and of d_dst * (src - mean)
  const double* statistics;
  float* d_bias;    ///< [used]
  float* d_weight;  ///< [used]

  [[nodiscard]] Grid grid() const { return fold().grid(); }
  [[nodiscard]] PACELINE_HD int phases() const { return 2; }
  PACELINE_HD void run(int phase, const ThreadIndex& at, float* memory) const {
    auto* shared = reinterpret_cast<double*>(memory);
    const int c = ColumnFold<2>::channel(at);
    if (c >= shape.used) return;
    if (phase == 0) return add_samples(c, at, shared);
    if (!ColumnFold<2>::is_first(at)) return;
    d_bias[c] = static_cast<float>(fold().total(0, at, shared));
    d_weight[c] = static_cast<float>(fold().total(1, at, shared));
  }

 private:
  [[nodiscard]] PACELINE_HD ColumnFold<2> fold() const { return {partial, 1, shape.parts, shape.channels}; }
  PACELINE_HD void add_samples(int c, const ThreadIndex& at, double* shared) const {
    using Fold = ColumnFold<2>;
    const int group = c / shape.channels_of_group();
    double sum = 0, products = 0;
    for (int i = at.thread / Fold::kChannels; i < shape.samples * shape.parts; i += Fold::kThreads) {
      const double* from = partial + std::int64_t{i} * 2 * shape.channels + c;
      sum += from[0];
      products += from[shape.channels] * statistics[2 * (i / shape.parts * shape.groups + group) + 1];
    }
    shared[at.thread] = sum;
    shared[Fold::kChannels * Fold::kThreads + at.thread] = products;
  }
};

}  // namespace paceline::engine::cuda
