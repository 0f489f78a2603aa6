#pragma once

/// Partial sums of shards joined in one fixed binary tree, whatever the number of workers (--shard).
///
/// The global batch is M shards. Level by level neighbours are added: (0 + 1), (2 + 3), ..., then those
/// pairs, and so on. A worker holds m = M / N consecutive shards; with m a power of two its shards are a
/// whole subtree, the worker's sum is that subtree's root, and the communicator's tree over ranks is the rest
/// of the same tree. So every N with such an m gives the same bits (any m is right for N = 1).
///
/// A worker walks its shards one after the other and keeps one partial sum a level of the tree, as a binary
/// counter keeps its digits: at most log2(m) + 1 arrays of the gradient's size.

#include <cstdint>
#include <span>
#include <vector>

#include "base/buffer.h"

namespace paceline::train {

class ShardSums {
 public:
  /// For `shards` shards a step of gradients of `elements` floats.
  ShardSums(std::int64_t shards, std::int64_t elements);

  /// How many arrays of the gradient's size it holds beside the gradient itself: the plan's line for it.
  [[nodiscard]] static std::int64_t arrays(std::int64_t shards);

  /// Takes the gradient of the next shard, which is not the step's last one.
  void add(std::span<const float> gradient);
  /// Joins everything kept with the last shard's gradient, on [begin, end) only, in place: bucket by bucket.
  void join_last(std::span<float> gradient, std::int64_t begin, std::int64_t end) const;
  /// Forgets the step.
  void clear();

 private:
  struct Level {
    base::Buffer sum;
    bool full = false;
  };
  std::int64_t shards_;
  std::int64_t seen_ = 0;
  std::vector<Level> levels_;
};

}  // namespace paceline::train
