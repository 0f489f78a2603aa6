#pragma once

/// Adds over the shards of a batch (CompileOptions::shard) in the tree of base/summation_tree.h: one engine
/// with several shards gets the same bits as several engines with fewer shards.

#include <array>
#include <cstddef>
#include <cstdint>

#include "base/summation_tree.h"
#include "engine/cuda/kernels/kernel.h"
#include "engine/cuda/ops/compiled_op.h"

namespace paceline::engine::cuda {

/// Adds the gradients of the shards: of each shard kArrays arrays of `count` floats.
template <std::size_t kArrays = 1>
class ShardSum {
 public:
  using Arrays = std::array<float*, kArrays>;

  ShardSum(int shards, std::int64_t count) : shards_(shards), count_(count) {}

  /// Device memory that run() needs.
  [[nodiscard]] std::int64_t bytes() const { return shards_ == 1 ? 0 : (levels() + 1) * stride() * 4; }

  /// Computes the arrays of each shard by write(shard, to), adds them, and copies the first `used` floats of
  /// the sums to `gradients`, of which each may be null. A single shard is written there at once. `memory`:
  /// where its scratch area begins.
  template <typename Write>
  void run(const ExecContext& exec, std::byte* memory, const Arrays& gradients, std::int64_t used,
           const Write& write) const {
    if (shards_ == 1) return write(0, gradients);
    auto* const first = reinterpret_cast<float*>(memory);
    base::TreeCounter counter;
    for (int shard = 0; shard < shards_; ++shard) {
      const bool is_last = shard + 1 == shards_;
      float* const to = first + (is_last ? levels() : counter.next_level()) * stride();
      write(shard, arrays_at(to));
      const auto join = [&](int level) {
        exec.launch(ArrayAdd{.left = first + level * stride(), .right = to, .dst = to, .count = floats()});
      };
      is_last ? counter.join_last(join) : counter.add(join);
    }
    const Arrays sums = arrays_at(first + levels() * stride());
    for (std::size_t i = 0; i < kArrays; ++i)
      if (gradients[i] != nullptr) exec.launch(ArrayCopy{.src = sums[i], .dst = gradients[i], .count = used});
  }

 private:
  [[nodiscard]] Arrays arrays_at(float* first) const {
    Arrays arrays;
    for (float*& array : arrays) {
      array = first;
      first += count_;
    }
    return arrays;
  }
  [[nodiscard]] std::int64_t floats() const { return static_cast<std::int64_t>(kArrays) * count_; }
  [[nodiscard]] int levels() const { return base::TreeCounter::levels(shards_); }
  [[nodiscard]] std::int64_t stride() const { return (floats() + 15) / 16 * 16; }

  int shards_;
  std::int64_t count_;
};

}  // namespace paceline::engine::cuda
