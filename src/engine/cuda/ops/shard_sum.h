#pragma once

/// Adds over the shards of a batch (CompileOptions::shard) in the tree of base/summation_tree.h: one engine
/// with several shards gets the same bits as several engines with fewer shards.

#include <cstdint>

#include "base/summation_tree.h"
#include "engine/cuda/kernels/kernel.h"
#include "engine/cuda/ops/compiled_op.h"

namespace paceline::engine::cuda {

/// Adds `shards` arrays of `count` floats that are computed one after the other.
class ShardSum {
 public:
  ShardSum(int shards, std::int64_t count) : shards_(shards), count_(count) {}

  /// Device memory that run() needs.
  [[nodiscard]] std::int64_t bytes() const { return (levels() + 1) * stride() * 4; }

  /// Computes each shard's array by write(shard, to), and adds them. Returns the address of the sum, in
  /// `memory`.
  template <typename Write>
  const float* run(const ExecContext& exec, float* memory, const Write& write) const {
    const auto at = [&](int level) { return memory + level * stride(); };
    base::TreeCounter counter;
    for (int shard = 0; shard < shards_; ++shard) {
      const bool is_last = shard + 1 == shards_;
      float* to = at(is_last ? levels() : counter.next_level());
      write(shard, to);
      const auto join = [&](int level) {
        exec.launch(ArrayAdd{.left = at(level), .right = to, .dst = to, .count = count_});
      };
      is_last ? counter.join_last(join) : counter.add(join);
    }
    return at(levels());
  }

 private:
  [[nodiscard]] int levels() const { return base::TreeCounter::levels(shards_); }
  [[nodiscard]] std::int64_t stride() const { return (count_ + 15) / 16 * 16; }

  int shards_;
  std::int64_t count_;
};

}  // namespace paceline::engine::cuda
