#pragma once

/// Which sample is at which position of an epoch: a pure function of (seed, epoch, position).

#include <cstdint>

namespace paceline::data {

/// A permutation of [0, size) for each epoch, seeded by a hash of (seed, epoch); the number of workers does
/// not matter. Without shuffling it is the identity.
///
/// Cost     O(1) a call (a keyed Feistel network with cycle walking), no storage
/// Threads  any number at once
class Sampler {
 public:
  Sampler(std::int64_t size, std::uint64_t seed, bool shuffle = true);
  /// The index in the data set of `position` in `epoch`. Requires 0 <= position < size().
  [[nodiscard]] std::int64_t index(std::int64_t epoch, std::int64_t position) const;
  [[nodiscard]] std::int64_t size() const { return size_; }

 private:
  std::int64_t size_;
  std::uint64_t seed_;
  bool shuffle_;
  int half_bits_;  ///< the Feistel network permutes [0, 4^half_bits)
};

}  // namespace paceline::data
