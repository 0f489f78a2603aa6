#pragma once

/// Permutations that are computed position by position, and the order of an epoch over shards.

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <vector>

#include "base/rng.h"

namespace paceline::data {

/// A permutation of [0, size) that `rng` chooses: a keyed Feistel network with cycle walking.
///
/// Cost     eight draws to make it; O(1) a call, no storage
class Permutation {
 public:
  Permutation(std::int64_t size, base::Rng rng);
  [[nodiscard]] std::int64_t operator()(std::int64_t position) const;

 private:
  // Four rounds make a Feistel network a pseudo-random permutation when its round function is ideal (Luby &
  // Rackoff 1988); this one is a cheap mixer and the halves are small, so twice as many rounds are used.
  static constexpr int kRounds = 8;

  std::int64_t size_;
  int half_bits_;  ///< the network permutes [0, 4^half_bits)
  std::array<std::uint32_t, kRounds> keys_;
};

/// The generator of a permutation of (seed, epoch). The epoch is a coordinate and never added to the seed:
/// with seed + epoch, run 1 epoch 0 would repeat run 0 epoch 1. `part` 0: of samples or shards; else of
/// window part - 1.
[[nodiscard]] inline base::Rng shuffle_rng(std::uint64_t seed, std::int64_t epoch, std::uint64_t part = 0) {
  return {seed, base::Purpose::shuffle, static_cast<std::uint64_t>(epoch), part};
}

/// Which sample comes at each position of an epoch, where that is not one permutation of all.
///
/// Threads  any number at once
class EpochOrder {
 public:
  virtual ~EpochOrder() = default;
  /// The index in the data set of `position` in `epoch`.
  [[nodiscard]] virtual std::int64_t index(std::int64_t epoch, std::int64_t position) const = 0;
};

/// The order of --shuffle window:W: the shards come in an order drawn for (seed, epoch), W at a time, and the
/// samples of such a window are permuted. So a reader needs W shards at a time, and every sample comes once
/// an epoch. Which worker takes a position does not matter.
///
/// Cost     O(log shards) a call; 12 bytes a shard for each of two epochs
class WindowOrder final : public EpochOrder {
 public:
  /// `sizes`: the samples of each shard, in the order of the data set's indices. `window` >= 1: W.
  WindowOrder(std::vector<std::int64_t> sizes, std::int64_t window, std::uint64_t seed);
  [[nodiscard]] std::int64_t index(std::int64_t epoch, std::int64_t position) const override;
  [[nodiscard]] std::int64_t size() const { return firsts_.back(); }

 private:
  /// The shards of an epoch in their order.
  struct Epoch {
    std::int64_t number = 0;
    std::vector<std::uint32_t> shards;  ///< [place]
    std::vector<std::int64_t> begins;   ///< [places + 1]: the position of a shard's first sample
  };
  [[nodiscard]] std::shared_ptr<const Epoch> epoch(std::int64_t number) const;

  std::vector<std::int64_t> firsts_;  ///< [shards + 1]: the index of a shard's first sample
  std::size_t window_;
  std::uint64_t seed_;
  mutable std::mutex mutex_;
  /// The two that were used last, since a loader prepares the next epoch while one ends.
  mutable std::array<std::shared_ptr<const Epoch>, 2> recent_;
};

}  // namespace paceline::data
