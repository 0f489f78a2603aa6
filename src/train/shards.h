#pragma once

/// Gradients of shards, added in the order of base/summation_tree.h whatever the number of workers (--shard).
///
/// The global batch is M shards. A worker holds m = M / N consecutive ones; with m a power of two they are a
/// whole subtree, the worker's sum is that subtree's root, and the communicator's tree over ranks is the rest
/// of the same tree. So every N with such an m gives the same bits (any m is right for N = 1).
///
/// A worker computes its shards one after the other and keeps one partial sum a level of the tree.

#include <cstdint>
#include <vector>

#include "base/memory.h"
#include "base/summation_tree.h"

namespace paceline::train {

class ShardSums {
 public:
  /// For `shards` shards a step of gradients like `gradient`: its sums lie where it does.
  ShardSums(std::int64_t shards, base::Array gradient);

  /// How many arrays of the gradient's size it holds beside the gradient itself: the plan's line for it.
  [[nodiscard]] static std::int64_t arrays(std::int64_t shards);

  /// Takes the gradient of the next shard, which is not the step's last one.
  void add(base::Array gradient);
  /// Joins everything kept with the last shard's gradient, on [begin, end) only, in place: bucket by bucket.
  void join_last(base::Array gradient, std::int64_t begin, std::int64_t end) const;
  /// Forgets the step.
  void clear() { counter_.clear(); }

 private:
  [[nodiscard]] base::Array kept(int level) const { return levels_[static_cast<std::size_t>(level)].array(); }
  std::int64_t shards_;
  base::TreeCounter counter_;
  std::vector<base::OwnedArray> levels_;  ///< the partial sum of 2^level shards
};

}  // namespace paceline::train
