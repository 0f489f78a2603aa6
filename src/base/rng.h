#pragma once

/// Counter-based random numbers: every draw is a pure function of (seed, purpose, coordinates).
///
/// There is no state to carry, so the order of threads, workers and restarts cannot change a draw. The
/// generator is Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011).

#include <array>
#include <cstdint>

namespace paceline::base {

/// What a random number is for. It is part of the key, so two uses never share a stream.
enum class Purpose : std::uint32_t {
  shuffle = 1,
  augment,
  dropout,
  weight,
  synthetic,
  test,
  bootstrap,
  crop,
  jitter,
  split,
  flip,
  warp,
  ghost,
  balance,
  trivial,
  erase,
  mix
};

/// Four 32-bit words for one counter (Philox4x32-10).
[[nodiscard]] std::array<std::uint32_t, 4> philox(std::array<std::uint32_t, 4> counter,
                                                  std::array<std::uint32_t, 2> key);

/// A short stream of draws: (seed, purpose) is the key, (a, b) the upper 96 bits of the counter, with `b` cut
/// to 32 bits. Cheap to make; one Philox call gives 4 words.
class Rng {
 public:
  Rng(std::uint64_t seed, Purpose purpose, std::uint64_t a = 0, std::uint64_t b = 0);

  std::uint32_t next_u32();
  /// Two of these, the first in the upper half.
  std::uint64_t next_u64();
  /// Uniform in [0, 1), 24 bits.
  float uniform() { return static_cast<float>(next_u32() >> 8) * 0x1p-24f; }
  /// Uniform in [0, 1), 53 bits.
  double uniform_f64() { return static_cast<double>(next_u64() >> 11) * 0x1p-53; }
  /// Uniform in [0, n), n >= 1; no modulo bias beyond 2^-32.
  std::uint32_t below(std::uint32_t n) {
    return static_cast<std::uint32_t>((static_cast<std::uint64_t>(next_u32()) * n) >> 32);
  }
  /// Standard normal (Box-Muller; two words a draw).
  float normal();

 private:
  std::array<std::uint32_t, 2> key_;
  std::array<std::uint32_t, 4> counter_;
  std::array<std::uint32_t, 4> block_{};
  int used_ = 4;
};

}  // namespace paceline::base
