#pragma once

/// Divides matrices of rows (pixels) and columns (channels) among threads, and sums them over rows.
///
/// A thread block processes a tile of up to 64 channels and some of the rows. Each thread has 8 fixed
/// channels, so that it loads the numbers of a channel once. Rows may form `groups` of consecutive rows of
/// equal size, each with its own results (ghost batch norm, shards).
///
/// A sum over rows takes two kernels: in the first, each block writes its partial sum; then SumFold (or a
/// kernel with a ColumnFold) adds these in double precision in a fixed order. The number of blocks depends on
/// the shape alone, so that every device, and the host, computes the same sums.

#include "engine/cuda/kernels/kernel.h"

namespace paceline::engine::cuda {

/// How a matrix is divided among threads.
struct Columns {
  std::int64_t rows = 0;  ///< of one group
  int groups = 1;
  int channels = 0;    ///< a multiple of 8
  int row_blocks = 1;  ///< blocks among which the rows of a group are divided, for one tile

  /// For kernels that write sums: just enough blocks to keep a GPU busy, since each block writes partial
  /// sums. 256 blocks run at once from 86 multiprocessors on, with 3 blocks each (or 128 with 2), so that no
  /// second round is left half empty. The order of a group's additions depends only on its number of rows and
  /// channels, not on the number of groups, so that a shard has the same sums in every batch.
  static Columns for_sums(std::int64_t rows, int groups, int channels) {
    return with_blocks(rows, groups, channels, 256);
  }
  /// For kernels that write rows: any number of blocks gives the same bits.
  static Columns for_rows(std::int64_t rows, int groups, int channels) {
    return with_blocks(rows, groups, channels, groups < 2048 ? 2048 / groups : 1);
  }

  [[nodiscard]] Grid grid(int shared_bytes = 0) const {
    return {.blocks = groups * row_blocks * tiles(),
            .threads = lanes() * row_threads(),
            .shared_bytes = shared_bytes};
  }

  /// Threads that share a row of the tile, each with 8 channels.
  [[nodiscard]] PACELINE_HD int lanes() const { return channels < 64 ? channels / kVector : 8; }
  /// Rows that a block processes at a time.
  [[nodiscard]] PACELINE_HD int row_threads() const { return lanes() > 4 ? 32 : 64; }
  [[nodiscard]] PACELINE_HD int tiles() const { return (channels / kVector + lanes() - 1) / lanes(); }

  /// The rows of a thread: first, first + step, ... < end, counted over all groups.
  struct Part {
    int group, row_block, lane, row_thread;
    int channel;     ///< the first of 8
    bool is_inside;  ///< false: outside of the last tile, which is not full; nothing to do
    std::int64_t first, step, end;
  };
  [[nodiscard]] PACELINE_HD Part part(const ThreadIndex& at) const {
    Part part{};
    const int tile = at.block % tiles(), rest = at.block / tiles();
    part.row_block = rest % row_blocks;
    part.group = rest / row_blocks;
    part.lane = at.thread % lanes();
    part.row_thread = at.thread / lanes();
    part.channel = (tile * lanes() + part.lane) * kVector;
    part.is_inside = part.channel < channels;
    part.step = std::int64_t{row_blocks} * row_threads();
    part.first = part.group * rows + part.row_block * row_threads() + part.row_thread;
    part.end = (part.group + 1) * rows;
    return part;
  }
  /// The number of rows that a block processes.
  [[nodiscard]] PACELINE_HD std::int64_t rows_of_block(int row_block) const {
    const std::int64_t step = std::int64_t{row_blocks} * row_threads();
    std::int64_t rest = rows % step - row_block * row_threads();
    rest = rest < 0 ? 0 : rest > row_threads() ? row_threads() : rest;
    return rows / step * row_threads() + rest;
  }

 private:
  static Columns with_blocks(std::int64_t rows, int groups, int channels, int most_blocks_of_group) {
    constexpr int kLeastRows = 4;  // for each thread
    Columns columns{.rows = rows, .groups = groups, .channels = channels, .row_blocks = 1};
    const std::int64_t rows_at_least = std::int64_t{kLeastRows} * columns.row_threads();
    const std::int64_t wanted = (rows + rows_at_least - 1) / rows_at_least;
    const std::int64_t most = most_blocks_of_group / columns.tiles();
    columns.row_blocks = static_cast<int>(wanted < most ? wanted : most);
    if (columns.row_blocks < 1) columns.row_blocks = 1;
    return columns;
  }
};

/// The number of rows of `arrays` arrays that a thread loads before it computes: 64 bytes in flight, which
/// needs few enough registers to run many threads.
template <typename T, int arrays>
constexpr int kRowsAtOnce = 64 / (kVector * static_cast<int>(sizeof(T)) * arrays) > 1
                                ? 64 / (kVector * static_cast<int>(sizeof(T)) * arrays)
                                : 1;

/// Calls use(row, load(row)) for each row of a part. Loads of kAtOnce rows are in flight together.
template <int kAtOnce, typename Load, typename Use>
PACELINE_HD void for_each_row(const Columns::Part& part, const Load& load, const Use& use) {
  using Loaded = decltype(load(part.first));
  std::int64_t row = part.first;
  for (; row + (kAtOnce - 1) * part.step < part.end; row += kAtOnce * part.step) {
    Loaded loaded[kAtOnce];
    PACELINE_UNROLL
    for (int i = 0; i < kAtOnce; ++i) loaded[i] = load(row + i * part.step);
    PACELINE_UNROLL
    for (int i = 0; i < kAtOnce; ++i) use(row + i * part.step, loaded[i]);
  }
  for (; row < part.end; row += part.step) use(row, load(row));
}

/// Adds kSums values for each channel over a block: in one phase each thread writes its sums to shared memory
/// with put(); in the next, thread t adds those of the tile's channel t with get().
template <int kSums>
struct BlockSums {
  static constexpr int kValues = kSums * kVector;
  static int shared_bytes(const Columns& columns) {
    return kValues * stride(columns) * static_cast<int>(sizeof(float));
  }
  PACELINE_HD static void put(const Columns& columns, const ThreadIndex& at, int sum, const Float8& values,
                              float* shared) {
    PACELINE_UNROLL
    for (int i = 0; i < kVector; ++i)
      shared[(sum * kVector + i) * stride(columns) + at.thread] = values.value[i];
  }
  /// The sum of channel number `channel_in_tile` of the tile.
  PACELINE_HD static double get(const Columns& columns, int channel_in_tile, int sum, const float* shared) {
    const int lane = channel_in_tile / kVector, i = channel_in_tile % kVector;
    double total = 0;
    for (int row = 0; row < columns.row_threads(); ++row)
      total +=
          static_cast<double>(shared[(sum * kVector + i) * stride(columns) + row * columns.lanes() + lane]);
    return total;
  }

 private:
  /// 8 more than the block's threads, so that neighbouring values are in different banks of shared memory.
  PACELINE_HD static int stride(const Columns& columns) {
    return columns.lanes() * columns.row_threads() + 8;
  }
};

/// Adds the blocks' partial sums of kSums values for each channel, group after group, in a fixed order. A
/// block processes 8 channels. For each channel 32 threads add every 32nd part, then the first thread adds
/// the 32 results. Each round waits for the memory, so that few rounds matter more than long rows.
template <int kSums>
struct ColumnFold {
  const double* partial;  ///< [groups][parts][kSums][channels]
  int groups, parts, channels;

  static constexpr int kChannels = 8, kThreads = 32;
  static constexpr int kSharedDoubles = kSums * kChannels * kThreads;
  [[nodiscard]] Grid grid(int more_shared_bytes = 0) const {
    return {.blocks = (channels + kChannels - 1) / kChannels,
            .threads = kChannels * kThreads,
            .shared_bytes = kSharedDoubles * static_cast<int>(sizeof(double)) + more_shared_bytes};
  }
  /// The channel of a thread; at least `channels` if it has none.
  PACELINE_HD static int channel(const ThreadIndex& at) {
    return at.block * kChannels + at.thread % kChannels;
  }
  PACELINE_HD static bool is_first(const ThreadIndex& at) { return at.thread < kChannels; }

  /// The first phase for a group.
  PACELINE_HD void add_parts(int group, const ThreadIndex& at, double* shared) const {
    const int c = channel(at);
    if (c >= channels) return;
    double total[kSums] = {};
    for (int part = at.thread / kChannels; part < parts; part += kThreads) {
      const double* sums = partial + (std::int64_t{group} * parts + part) * kSums * channels + c;
      PACELINE_UNROLL
      for (int s = 0; s < kSums; ++s) total[s] += sums[std::int64_t{s} * channels];
    }
    PACELINE_UNROLL
    for (int s = 0; s < kSums; ++s) shared[s * kChannels * kThreads + at.thread] = total[s];
  }
  /// The second phase, for threads with is_first().
  [[nodiscard]] PACELINE_HD double total(int sum, const ThreadIndex& at, const double* shared) const {
    double result = 0;
    PACELINE_UNROLL
    for (int i = 0; i < kThreads; ++i)
      result += shared[sum * kChannels * kThreads + i * kChannels + at.thread];
    return result;
  }
};

/// sums[group][s][channel] = the sum of the group's parts.
///
/// Cost   a few microseconds: reads 8 * groups * parts * 2 * channels bytes from the cache
struct SumFold {
  ColumnFold<2> fold;
  double* sums;  ///< [groups][2][channels]

  [[nodiscard]] Grid grid() const { return fold.grid(); }
  [[nodiscard]] PACELINE_HD int phases() const { return 2 * fold.groups; }
  PACELINE_HD void run(int phase, const ThreadIndex& at, float* shared) const {
    auto* doubles = reinterpret_cast<double*>(shared);
    const int group = phase / 2, c = ColumnFold<2>::channel(at);
    if (phase % 2 == 0) {
      fold.add_parts(group, at, doubles);
    } else if (ColumnFold<2>::is_first(at) && c < fold.channels) {
      for (int s = 0; s < 2; ++s)
        sums[(std::int64_t{group} * 2 + s) * fold.channels + c] = fold.total(s, at, doubles);
    }
  }
};

// Kernels for the bias of a convolution or dense layer: BiasAdd adds it to the output, BiasGradientSums and
// BiasGradient compute its gradient.
//
// Shapes   values, dst, d_dst [rows][channels] in storage T, rows = N * P * Q, channels padded to a multiple
//          of 8; bias, d_bias [used] fp32. Padding stays 0.

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
  PACELINE_HD void run(const ThreadIndex& at) const {
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
    if (phase == 0) return add_rows(part, at, shared);
    const int c = part.channel - part.lane * kVector + at.thread;
    if (at.thread >= columns.lanes() * kVector || c >= columns.channels) return;
    partial[(std::int64_t{part.group} * columns.row_blocks + part.row_block) * columns.channels + c] =
        BlockSums<1>::get(columns, at.thread, 0, shared);
  }

 private:
  PACELINE_HD void add_rows(const Columns::Part& part, const ThreadIndex& at, float* shared) const {
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
    BlockSums<1>::put(columns, at, 0, sum, shared);
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
