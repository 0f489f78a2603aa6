#pragma once

/// The figures of collectives that were timed alone (`paceline comm`).
///
/// X      bytes: of an all-gather its result, of a reduce-scatter what it sums
/// t      time of the slowest rank, of one collective
/// algbw  X / t;  busbw = algbw x 2(N-1)/N (all_reduce), x (N-1)/N (reduce_scatter, all_gather), x 1
///        (broadcast): what each link would carry in a ring, comparable across N
/// GB = 1e9 bytes. One rank alone transfers nothing: it has times, those of the call, and no bandwidth.

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

/// busbw / algbw; 0 for one rank. As comm::bus_factor says it, which analysis cannot see: a test holds both
/// together.
[[nodiscard]] double bus_factor(std::string_view collective, int ranks);

/// Whether `fit` is of a bandwidth: at the largest X that was timed, bytes take at least a twentieth of the
/// time. Below that the slope is that of the latency's scatter (4 TB/s, say, from sizes up to 64 KiB).
[[nodiscard]] bool shows_bandwidth(const measure::LinkFitRecord& fit, const measure::Record& record);

}  // namespace paceline::analysis
