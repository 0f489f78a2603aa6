#pragma once

/// DropoutMask decides which elements dropout keeps. All engines use it, so their masks are the same bits.
///
/// A mask is a pure function of (seed, step, position of the sample in the global batch, op, element), and so
/// is the same for any number of workers, threads and shards. Elements are counted in C, H, W order inside
/// the sample, whatever the engine's layout is. One call of Philox decides four consecutive elements. Calls
/// are independent: an engine may compute many at once in vector registers, as long as it uses the same
/// counters.

#include <array>
#include <cstdint>

#include "base/rng.h"

namespace paceline::engine {

/// The keep-or-drop decisions of one op for one sample.
///
/// Element i is kept when word i % 4 of Philox call i / 4 is at least `threshold`. The call's counter is
/// {i / 4, position, low word of step, high word of step}; its key mixes seed, purpose and op.
class DropoutMask {
 public:
  /// `op`: index of the node in the graph; `position`: of the sample in the global batch.
  DropoutMask(std::uint64_t seed, std::uint64_t step, std::int64_t position, int op, double probability)
      : key_{static_cast<std::uint32_t>(seed) ^ kPurpose * 0x9E3779B1u,
             static_cast<std::uint32_t>(seed >> 32) + kPurpose +
                 0x85EBCA6Bu * static_cast<std::uint32_t>(op)},
        step_(static_cast<std::uint32_t>(step)),
        step_high_(static_cast<std::uint32_t>(step >> 32)),
        position_(static_cast<std::uint32_t>(position)),
        threshold_(static_cast<std::uint32_t>(probability * 0x1p32)) {}

  /// The four words for elements 4 * group .. 4 * group + 3.
  [[nodiscard]] std::array<std::uint32_t, 4> block(std::uint32_t group) const {
    return base::philox({group, position_, step_, step_high_}, key_);
  }
  /// Stochastic depth: whether the whole sample is kept. The decision is that of element 0.
  [[nodiscard]] bool keeps_sample() const { return block(0)[0] >= threshold_; }
  /// An element is kept if its word is at least this: P(drop) = probability, to 2^-32.
  [[nodiscard]] std::uint32_t threshold() const { return threshold_; }

  /// For engines that compute Philox themselves: its counter is {group, counter()[0], counter()[1],
  /// counter()[2]}.
  [[nodiscard]] std::array<std::uint32_t, 3> counter() const { return {position_, step_, step_high_}; }
  [[nodiscard]] std::array<std::uint32_t, 2> key() const { return key_; }

  /// Calls `visit(element, kept)` for elements 0 .. count-1, in order.
  template <typename Visit>
  void for_each(std::int64_t count, Visit visit) const {
    for (std::int64_t first = 0; first < count; first += 4) {
      const auto words = block(static_cast<std::uint32_t>(first / 4));
      for (std::int64_t i = 0; i < 4 && first + i < count; ++i)
        visit(first + i, words[static_cast<std::size_t>(i)] >= threshold_);
    }
  }

 private:
  static constexpr std::uint32_t kPurpose = static_cast<std::uint32_t>(base::Purpose::dropout);
  std::array<std::uint32_t, 2> key_;
  std::uint32_t step_, step_high_, position_;
  std::uint32_t threshold_;
};

}  // namespace paceline::engine
