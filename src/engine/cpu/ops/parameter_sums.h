#pragma once

/// ParameterSums adds the gradients of a layer's parameters over the batch, as all ops with sums over rows
/// do: in double within a shard, in the order of the parts; each shard's sum is rounded to float, as a worker
/// with this shard alone would have it, and the shards are joined as the workers' gradients are.

#include <algorithm>
#include <cstdint>
#include <vector>

#include "engine/cpu/ops/factories.h"
#include "engine/cpu/parallel.h"

namespace paceline::engine::cpu {

class ParameterSums {
 public:
  /// `count`: parameters. `row_elements`: of a row of the batch, which has `rows` rows.
  ParameterSums(const BuildContext& build, int count, std::int64_t rows, std::int64_t row_elements)
      : count_(count),
        shards_(build.shards()),
        rows_(rows / shards_),
        least_(least_of(row_elements)),
        values_(static_cast<std::size_t>(shards_ * count)) {
    if (build.options.training) build.memory.scratch(bytes_of_part() * ranges_of(rows_, least_));
  }

  /// Calls take(rows, sums, scratch) for parts of the rows on all threads: it adds to sums [count], and has
  /// scratch [count]. Returns the total [count].
  template <typename Take>
  const float* sum(const ExecContext& exec, const Take& take) {
    for (int shard = 0; shard < shards_; ++shard) {
      parallel_ranges(exec.pool, rows_, least_, [&](int part, Range rows) {
        double* const sums = sums_of(exec, part);
        std::fill_n(sums, count_, 0.0);
        take(Range{rows.begin + shard * rows_, rows.end + shard * rows_}, sums,
             reinterpret_cast<float*>(sums + count_));
      });
      const int parts = ranges_of(rows_, least_);
      for (int i = 0; i < count_; ++i) {
        double total = 0;
        for (int part = 0; part < parts; ++part) total += sums_of(exec, part)[i];
        of_shard(shard)[i] = static_cast<float>(total);
      }
    }
    join_as_tree(shards_, [&](int into, int from) {
      for (int i = 0; i < count_; ++i) of_shard(into)[i] += of_shard(from)[i];
    });
    return of_shard(0);
  }

 private:
  [[nodiscard]] std::int64_t bytes_of_part() const { return whole_lines(std::int64_t{12} * count_); }
  [[nodiscard]] double* sums_of(const ExecContext& exec, int part) const {
    return reinterpret_cast<double*>(exec.memory.scratch + bytes_of_part() * part);
  }
  [[nodiscard]] float* of_shard(int shard) { return values_.data() + std::ptrdiff_t{1} * shard * count_; }

  const int count_, shards_;
  const std::int64_t rows_;    ///< of a shard
  const std::int64_t least_;   ///< rows of a part
  std::vector<float> values_;  ///< [shards][count]
};

}  // namespace paceline::engine::cpu
