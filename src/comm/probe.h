#pragma once

/// What a communicator reaches at one message size: timed, and checked element by element.

#include <cstddef>
#include <vector>

#include "comm/communicator.h"

namespace paceline::comm {

struct Probe {
  std::size_t bytes = 0;        ///< X, of one all-reduce
  std::vector<double> seconds;  ///< each repetition, the slowest rank's; the same on every rank
  bool correct = true;          ///< every element on every rank, in every repetition
};

/// Times `repeats` all-reduces of `count` floats after `warmup` more; a barrier before each, so that nobody's
/// time holds waiting for a late rank. Buffers are filled anew in between, as a backward pass would.
///
/// Errors   as the communicator's
/// Threads  collective: every rank calls it with the same arguments
[[nodiscard]] Probe probe_all_reduce(Communicator& communicator, std::size_t count, int warmup, int repeats);

/// busbw / algbw of an all-reduce over `ranks`: 2 (N-1)/N (docs/collectives.md).
[[nodiscard]] constexpr double bus_factor(int ranks) { return 2.0 * (ranks - 1) / ranks; }

}  // namespace paceline::comm
