#pragma once

/// Computes the figures of collectives that were timed alone (`paceline comm`).
///
///   X      bytes; for an all-gather those of its result, for a reduce-scatter those of its input
///   t      time of the slowest rank for one collective
///   algbw  X / t
///   busbw  algbw x 2(N-1)/N (all_reduce), x (N-1)/N (reduce_scatter, all_gather), x 1 (broadcast): the rate
///          of each link in a ring, comparable across N
///
/// GB = 1e9 bytes. A single rank transfers nothing: it has the times of the calls, and no bandwidth.

#include <optional>
#include <string_view>

#include "measure/record.h"
#include "measure/statistics.h"

namespace paceline::analysis {

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

}  // namespace paceline::analysis
