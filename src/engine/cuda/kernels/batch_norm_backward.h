#pragma once

/// Kernels of batch normalisation, backward pass: two sums, gradients of the parameters, d_src.
///
///     local, ghost  BatchNormGradientSums -> BatchNormGradients (both results) -> BatchNormGradientApply
///     synchronised  BatchNormGradientSums -> SumFold -> BatchNormGradients (of this worker's or shard's
///                   sums, parameter gradients alone) -> sums over workers and shards -> BatchNormGradients
///                   (coefficients alone) -> BatchNormGradientApply
///
/// Shapes and groups as in batch_norm.h.

#include "engine/cuda/kernels/batch_norm.h"
#include "engine/cuda/kernels/kernel.h"

namespace paceline::engine::cuda {

/// How the backward pass finds where the ReLU after a batch norm was positive.
enum class ReluMask : int {
  none,      ///< no ReLU
  from_dst,  ///< where the stored output is > 0; necessary with a residual
  from_src,  ///< where the recomputed output is > 0; saves reading the output
};

/// The incoming gradient, set to zero where the ReLU was not positive. What decides how it is computed is a
/// template argument of the kernels: a branch at run time keeps registers for all four arrays.
template <typename T>
struct MaskedGradient {
  const T* src;
  const T* dst;  ///< the op's output; null unless ReluMask::from_dst
  const T* d_dst;
  const T* d_dst2;  ///< a second term of the gradient; null: none
  ReluMask mask;
  BatchNormParameters parameters;
};

/// MaskedGradient as a kernel computes it. kTwoTerms: d_dst2 is not null.
template <typename T, ReluMask kMask, bool kTwoTerms>
struct MaskedRows {
  const MaskedGradient<T>& of;
  const Columns& columns;

  struct Raw {
    Raw8<T> src, dst, d_dst, d_dst2;
  };
  struct Channels {
    Float8 mean, scale, bias;
  };
  /// Without scale and bias unless the mask needs them.
  [[nodiscard]] PACELINE_HD Channels channels_of(const Columns::Part& part) const {
    Channels channels{load8(of.parameters.mean(part.group, columns.channels) + part.channel), {}, {}};
    if constexpr (kMask == ReluMask::from_src) {
      channels.scale = load8(of.parameters.scale(part.group, columns.channels) + part.channel);
      channels.bias = load8(of.parameters.bias(part.group, columns.channels) + part.channel);
    }
    return channels;
  }
  [[nodiscard]] PACELINE_HD Raw load_row(const Columns::Part& part, std::int64_t row) const {
    const std::int64_t i = row * columns.channels + part.channel;
    Raw raw{load_raw(of.src + i), {}, load_raw(of.d_dst + i), {}};
    if constexpr (kMask == ReluMask::from_dst) raw.dst = load_raw(of.dst + i);
    if constexpr (kTwoTerms) raw.d_dst2 = load_raw(of.d_dst2 + i);
    return raw;
  }
  /// The first or second four channels of a row in fp32; the others are 0.
  [[nodiscard]] PACELINE_HD Raw load_half(const Columns::Part& part, std::int64_t row, int half) const {
    const std::int64_t i = row * columns.channels + part.channel + 4 * half;
    Raw raw{};
    raw.src.half[half] = load16(of.src + i);
    raw.d_dst.half[half] = load16(of.d_dst + i);
    if constexpr (kMask == ReluMask::from_dst) raw.dst.half[half] = load16(of.dst + i);
    if constexpr (kTwoTerms) raw.d_dst2.half[half] = load16(of.d_dst2 + i);
    return raw;
  }
  /// Returns the masked gradient, and src - mean in `centred`.
  [[nodiscard]] PACELINE_HD Float8 gradient(const Raw& raw, const Channels& at, Float8& centred) const {
    const Float8 x = to_float8(raw.src), y = to_float8(raw.dst), second = to_float8(raw.d_dst2);
    Float8 g = to_float8(raw.d_dst);
    PACELINE_UNROLL
    for (int i = 0; i < kVector; ++i) {
      centred.value[i] = x.value[i] - at.mean.value[i];
      if constexpr (kTwoTerms) g.value[i] += second.value[i];
      if constexpr (kMask == ReluMask::from_dst)
        if (!(y.value[i] > 0)) g.value[i] = 0;
      // The same operations as in BatchNormApply give the same sign.
      if constexpr (kMask == ReluMask::from_src)
        if (!(centred.value[i] * at.scale.value[i] + at.bias.value[i] > 0)) g.value[i] = 0;
    }
    return g;
  }
};

/// Calls call.operator()<kMask, kTwoTerms, kStores>() of the BatchNormGradientSums that `gradient` asks for.
///
/// Requires  `stores` with a mask from dst (there is a residual) or two terms, not with one from src
/// otherwise
template <typename T, typename Call>
void with_ways_of(const MaskedGradient<T>& gradient, bool stores, const Call& call) {
  const bool two = gradient.d_dst2 != nullptr;
  if (gradient.mask == ReluMask::from_dst)
    return two ? call.template operator()<ReluMask::from_dst, true, true>()
               : call.template operator()<ReluMask::from_dst, false, true>();
  if (gradient.mask == ReluMask::from_src)
    return two ? call.template operator()<ReluMask::from_src, true, true>()
               : call.template operator()<ReluMask::from_src, false, false>();
  if (two) return call.template operator()<ReluMask::none, true, true>();
  stores ? call.template operator()<ReluMask::none, false, true>()
         : call.template operator()<ReluMask::none, false, false>();
}

/// Sums the masked gradient g, and g * (src - mean), in each block. kStores: d_masked is not null.
///
/// Cost   reads src, the gradient's terms and (from_dst) dst once; writes d_masked once if it is not null
template <typename T, ReluMask kMask, bool kTwoTerms, bool kStores>
struct BatchNormGradientSums {
  static constexpr int kLeastBlocks = 3;  ///< a multiprocessor runs, so that all run in one round on an A100

  Columns columns;  ///< Columns::for_sums
  MaskedGradient<T> gradient;
  /// Receives g, which is also the residual's gradient, for BatchNormGradientApply to read. May be d_dst or
  /// d_dst2.
  T* d_masked;
  double* partial;  ///< [groups][columns.row_blocks][2][channels]

  [[nodiscard]] Grid grid() const { return columns.grid(BlockSums<2>::shared_bytes(columns)); }
  [[nodiscard]] PACELINE_HD int phases() const { return 2; }
  PACELINE_HD void run(int phase, const ThreadIndex& at, float* shared) const {
    const Columns::Part part = columns.part(at);
    phase == 0 ? add_rows(part, at, shared) : write(part, at, shared);
  }

 private:
  using Rows = MaskedRows<T, kMask, kTwoTerms>;
  /// 64 bytes in flight, counted over the arrays that are read: more would not leave registers for three
  /// blocks. In fp32 two terms are read by halves of a row.
  static constexpr int kArrays = 2 + (kMask == ReluMask::from_dst ? 1 : 0) + (kTwoTerms ? 1 : 0);
  static constexpr int kRows = kRowsAtOnce<T, kArrays>;
  static constexpr bool kByHalves = kTwoTerms && sizeof(T) == sizeof(float);
  PACELINE_HD void add_rows(const Columns::Part& part, const ThreadIndex& at, float* shared) const {
    Float8 sum{}, products{};
    if (part.is_inside && part.first < part.end) {
      const Rows rows{gradient, columns};
      const auto channels = rows.channels_of(part);
      const auto add = [&](const typename Rows::Raw& raw, const typename Rows::Channels& of, int first,
                           int count, const auto& store) {
        Float8 centred;
        Float8 g = rows.gradient(raw, of, centred);
        if constexpr (kStores) {
          store(g);
          g = as_stored<T>(g);  // the sums are those of the values that apply reads
        }
        PACELINE_UNROLL
        for (int i = first; i < first + count; ++i) {
          sum.value[i] += g.value[i];
          products.value[i] += g.value[i] * centred.value[i];
        }
      };
      const auto stored_at = [&](std::int64_t row) {
        return d_masked + row * columns.channels + part.channel;
      };
      if constexpr (kByHalves)
        for_each_row<1>(
            part, [](std::int64_t row) { return row; },
            [&](std::int64_t row, std::int64_t) {
              PACELINE_UNROLL
              for (int half = 0; half < 2; ++half)
                // From the cache again where there are three numbers of each channel to keep.
                add(rows.load_half(part, row, half),
                    kMask == ReluMask::from_src ? rows.channels_of(part) : channels, 4 * half, 4,
                    [&](const Float8& g) {
                      Float4 four;
                      PACELINE_UNROLL
                      for (int i = 0; i < 4; ++i) four.value[i] = g.value[4 * half + i];
                      store4(four, stored_at(row) + 4 * half);
                    });
            });
      else
        for_each_row<kRows>(
            part, [&](std::int64_t row) { return rows.load_row(part, row); },
            [&](std::int64_t row, const typename Rows::Raw& raw) {
              add(raw, channels, 0, kVector, [&](const Float8& g) { store8(g, stored_at(row)); });
            });
    }
    BlockSums<2>::put(columns, at, 0, sum, shared);
    BlockSums<2>::put(columns, at, 1, products, shared);
  }
  PACELINE_HD void write(const Columns::Part& part, const ThreadIndex& at, const float* shared) const {
    const int c = part.channel - part.lane * kVector + at.thread;
    if (at.thread >= columns.lanes() * kVector || c >= columns.channels) return;
    double* to =
        partial + (std::int64_t{part.group} * columns.row_blocks + part.row_block) * 2 * columns.channels;
    to[c] = BlockSums<2>::get(columns, at.thread, 0, shared);
    to[columns.channels + c] = BlockSums<2>::get(columns, at.thread, 1, shared);
  }
};

/// Computes three things from the two sums, in double precision: the gradients of the parameters; the batch's
/// statistics, for the slots of the running statistics (times batch * gradient_scale, so that a sum over
/// workers is their mean); and the coefficients that BatchNormGradientApply reads.
///
/// Cost   a few microseconds, like SumFold
struct BatchNormGradients {
  ColumnFold<2> fold;  ///< sums of blocks; partial == nullptr: `sums` are read instead
  const double* sums;  ///< [groups][2][channels]: of g, of g * (src - mean)
  int used;
  double count;              ///< number of rows that share statistics, of all workers; infinity if frozen
  const double* statistics;  ///< as BatchNormStatistics wrote them
  const float* weight;       ///< [used]
  const StepNumbers* step;
  int batch;        ///< samples whose statistics these are; 0 if frozen
  float* d_weight;  ///< [used]; null: parameter gradients and statistics are not stored
  float* d_bias;
  float* d_running_mean;
  float* d_running_var;
  float* coefficients;  ///< [groups][2][channels]: slope, offset; null: not computed

  static constexpr int kOwn = 2 * ColumnFold<2>::kChannels;
  [[nodiscard]] Grid grid() const { return fold.grid(kOwn * static_cast<int>(sizeof(double))); }
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
    const bool folded = fold.partial != nullptr;
    const double sum = folded ? fold.total(0, at, doubles) : given[0];
    const double products = folded ? fold.total(1, at, doubles) : given[fold.channels];
    if (coefficients != nullptr) store_coefficients(group, c, sum, products);
    if (d_weight == nullptr) return;
    // One thread of each channel adds over the groups.
    double* own = doubles + ColumnFold<2>::kSharedDoubles + at.thread;
    own[0] = (group == 0 ? 0 : own[0]) + sum;
    own[ColumnFold<2>::kChannels] =
        (group == 0 ? 0 : own[ColumnFold<2>::kChannels]) + products * statistic(1, group, c);
    if (group == fold.groups - 1 && c < used) store_gradients(c, own[0], own[ColumnFold<2>::kChannels]);
  }

 private:
  [[nodiscard]] PACELINE_HD double statistic(int which, int group, int c) const {
    return statistics[(std::int64_t{group} * 3 + which) * fold.channels + c];
  }
  PACELINE_HD void store_coefficients(int group, int c, double sum, double products) const {
    const double inverse = statistic(1, group, c);
    const double scale = c < used ? static_cast<double>(weight[c]) * inverse : 0;
    float* to = coefficients + std::int64_t{group} * 2 * fold.channels + c;
    to[0] = static_cast<float>(-scale * (inverse * inverse) * products / count);
    to[fold.channels] = static_cast<float>(-scale * sum / count);
  }
  PACELINE_HD void store_gradients(int c, double sum, double products) const {
    d_bias[c] = static_cast<float>(sum);
    d_weight[c] = static_cast<float>(products);
    double mean = 0, variance = 0;
    for (int group = 0; group < fold.groups; ++group) {
      mean += statistic(0, group, c);
      variance += statistic(2, group, c);
    }
    const double share = batch * step->gradient_scale / fold.groups;
    d_running_mean[c] = static_cast<float>(mean * share);
    d_running_var[c] = static_cast<float>(variance * share);
  }
};

/// d_src = scale * g + slope * (src - mean) + offset. d_src may be any array that is read.
///
/// Cost   reads the arrays of `gradient`, writes d_src. If BatchNormGradientSums stored d_masked, gradient is
///        {src, null, d_masked, null, ReluMask::none}, which is two arrays
template <typename T, ReluMask kMask>
struct BatchNormGradientApply {
  static_assert(kMask != ReluMask::from_dst, "with a residual BatchNormGradientSums stores d_masked");
  Columns columns;             ///< Columns::for_rows
  MaskedGradient<T> gradient;  ///< of one term
  const float* coefficients;   ///< as BatchNormGradients wrote them
  T* d_src;

  [[nodiscard]] Grid grid() const { return columns.grid(); }
  PACELINE_HD void run(const ThreadIndex& at) const {
    using Rows = MaskedRows<T, kMask, false>;
    const Columns::Part part = columns.part(at);
    if (!part.is_inside || part.first >= part.end) return;
    const Rows rows{gradient, columns};
    auto channels = rows.channels_of(part);
    if constexpr (kMask == ReluMask::none)
      channels.scale = load8(gradient.parameters.scale(part.group, columns.channels) + part.channel);
    const float* of_group = coefficients + std::int64_t{part.group} * 2 * columns.channels + part.channel;
    const Float8 slope = load8(of_group), offset = load8(of_group + columns.channels);
    for_each_row<kRowsAtOnce<T, 2>>(
        part, [&](std::int64_t row) { return rows.load_row(part, row); },
        [&](std::int64_t row, const typename Rows::Raw& raw) {
          Float8 centred;
          Float8 g = rows.gradient(raw, channels, centred);
          PACELINE_UNROLL
          for (int i = 0; i < kVector; ++i)
            g.value[i] =
                channels.scale.value[i] * g.value[i] + slope.value[i] * centred.value[i] + offset.value[i];
          store8(g, d_src + row * columns.channels + part.channel);
        });
  }
};

}  // namespace paceline::engine::cuda
