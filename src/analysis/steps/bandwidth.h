#pragma once

/// Computes the figures of a cell's all-reduce: bytes, algorithm bandwidth (algbw), bus bandwidth (busbw),
/// utilisation.
///
///   X      bytes that one step reduces, all buckets: the gradients, and on devices the votes behind them
///   t      transfer time of a step: moving bytes, without waiting for a later rank
///   algbw  X / t
///   busbw  algbw 2(N-1)/N: the rate of each link in a ring, comparable across N
///   sent   bytes that a rank sent per step, as counted. If they differ from the ring's 2(N-1)/N X, the
///          algorithm is not a ring, and busbw is only for comparison, not the real traffic
///
/// The bytes of an epoch are its steps times the bytes of one step. GB = 1e9 bytes.

#include <cstdint>
#include <optional>
#include <string>

#include "analysis/compare/cell.h"

namespace paceline::analysis {

// The formulas. Units: bytes, seconds, GB/s.
[[nodiscard]] double ring_bytes(double bytes, int workers);  ///< 2(N-1)/N x bytes
[[nodiscard]] Estimate algbw_gb_per_s(double bytes, const Estimate& seconds);
[[nodiscard]] Estimate busbw_gb_per_s(const Estimate& algbw, int workers);

struct Bandwidth {
  const Cell* cell = nullptr;
  std::string algorithm;
  double bytes_per_step = 0;     ///< X
  double bytes_per_epoch = 0;    ///< steps x X
  double largest_message = 0;    ///< bytes of the largest bucket
  std::int64_t buckets = 0;      ///< all-reduces per step
  double sent_per_step = 0;      ///< counted, by rank 0
  double ring_per_step = 0;      ///< by the formula
  bool is_ring_traffic = false;  ///< counted within 1 % of the formula
  Estimate transfer_s;           ///< t, per step
  Estimate algbw, busbw;         ///< GB/s
  /// Busbw of reducing the same buckets with nothing else running: the median of each run, then of the
  /// repeats.
  std::optional<Estimate> ceiling;
  std::optional<Estimate> utilisation;  ///< busbw / ceiling, with the intervals of both
};

/// Nothing for one worker, or if no transfer was timed.
[[nodiscard]] std::optional<Bandwidth> bandwidth(const Cell& cell);

}  // namespace paceline::analysis
