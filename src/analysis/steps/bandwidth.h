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
#include <span>
#include <string>
#include <string_view>

#include "analysis/compare/cell.h"
#include "analysis/steps/step_lines.h"
#include "measure/record.h"
#include "measure/statistics.h"

namespace paceline::analysis {

// Fits latency and bandwidth of a communicator to the times of one collective over message sizes.
//
//     t(X) = alpha + X / bandwidth        Hockney's model: one message costs alpha, a byte 1 / bandwidth

struct LinkFit {
  double alpha_s = 0;      ///< at least 0
  double bytes_per_s = 0;  ///< algorithm bandwidth of a long message
  /// Root mean square of (t_model - t) / t: caches and switches of algorithm bend the line.
  double residual = 0;
  [[nodiscard]] double seconds(double bytes) const { return alpha_s + bytes / bytes_per_s; }
};

/// Nothing for fewer than three sizes, or if time does not grow with size.
[[nodiscard]] std::optional<LinkFit> fit_link(std::span<const TimedMessage> messages);

// Computes the figures of collectives that were timed alone (`paceline comm`).
//
//   X      bytes; for an all-gather those of its result, for a reduce-scatter those of its input
//   t      time of the slowest rank for one collective
//   busbw  algbw x 2(N-1)/N (all_reduce), x (N-1)/N (reduce_scatter, all_gather), x 1 (broadcast)
//
// A single rank transfers nothing: it has the times of the calls, and no bandwidth.

struct CollectiveFigures {
  measure::Estimate seconds;                      ///< t
  std::optional<measure::Estimate> algbw, busbw;  ///< GB/s; nothing for one rank
};
[[nodiscard]] CollectiveFigures figures(const measure::CollectiveRecord& one, int ranks);

/// busbw / algbw; 0 for one rank. The same as comm::bus_factor, which analysis may not include; a test
/// compares them.
[[nodiscard]] double bus_factor(std::string_view collective, int ranks);

/// Whether `fit` determines a bandwidth: at the largest timed X, bytes take at least a twentieth of the time.
/// Below that the slope is noise of the latency (4 TB/s, say, from sizes up to 64 KiB).
[[nodiscard]] bool shows_bandwidth(const measure::LinkFitRecord& fit, const measure::Record& record);

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
  std::optional<Estimate> utilisation;  ///< busbw / ceiling, with both intervals; none if it would be above 1
};

/// Nothing for one worker, or if no transfer was timed.
[[nodiscard]] std::optional<Bandwidth> bandwidth(const Cell& cell);

}  // namespace paceline::analysis
