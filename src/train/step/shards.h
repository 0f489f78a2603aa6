#pragma once

/// Adds gradients of shards in the order of base/summation_tree.h, whatever the number of workers (--shard).
///
/// The global batch is M shards. A worker has m = M / N consecutive ones. If m is a power of two they are a
/// whole subtree, the worker's sum is that subtree's root, and the communicator's tree over ranks is the rest
/// of the same tree. So every N with such an m gives the same bits (for N = 1 any m does).
///
/// A worker computes its shards one after another and keeps one partial sum per level of the tree.

#include <cstdint>
#include <vector>

#include "base/memory.h"
#include "base/summation_tree.h"

namespace paceline::train {

class ShardSums {
 public:
  /// For `shards` shards per step. Its sums lie in the memory of `gradient` and have its size.
  ShardSums(std::int64_t shards, base::Array gradient);

  /// The number of arrays of the gradient's size that it holds besides the gradient, for the memory plan.
  [[nodiscard]] static std::int64_t arrays(std::int64_t shards);

  /// Adds the gradient of the next shard, which must not be the step's last one.
  void add(base::Array gradient);
  /// Adds everything kept to the last shard's gradient, in place, on [begin, end) only: bucket by bucket.
  void join_last(base::Array gradient, std::int64_t begin, std::int64_t end) const;
  /// Begins a new step.
  void clear() { counter_.clear(); }

 private:
  [[nodiscard]] base::Array kept(int level) const { return levels_[static_cast<std::size_t>(level)].array(); }
  std::int64_t shards_;
  base::TreeCounter counter_;
  std::vector<base::OwnedArray> levels_;  ///< the partial sum of 2^level shards
};

}  // namespace paceline::train
