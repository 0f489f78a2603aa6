#pragma once

/// What a communicator reaches at one message size: timed, and checked element by element.

#include <cstddef>
#include <string_view>
#include <vector>

#include "comm/communicator.h"

namespace paceline::comm {

/// What can be timed. In place: the result overwrites what was given; all_reduce and broadcast know nothing
/// else.
enum class Collective { all_reduce, all_gather, all_gather_in_place, broadcast };
[[nodiscard]] std::string_view name(Collective collective);  ///< "all_gather"
[[nodiscard]] constexpr bool is_in_place(Collective collective) {
  return collective != Collective::all_gather;
}

struct Probe {
  std::size_t bytes = 0;        ///< X: of one all-reduce or broadcast, of the result of an all-gather
  std::vector<double> seconds;  ///< each repetition, the slowest rank's; the same on every rank
  bool correct = true;          ///< every element on every rank, in every repetition
};

/// Times `repeats` collectives of about `count` floats (an all-gather: rounded down to a multiple of the
/// ranks) after `warmup` more; a barrier before each, so that nobody's time holds waiting for a late rank.
/// Buffers are filled anew in between, as a backward pass would, and every result is compared with a closed
/// form.
///
/// Errors   as the communicator's
/// Threads  collective: every rank calls it with the same arguments
[[nodiscard]] Probe probe(Communicator& communicator, Collective collective, std::size_t count, int warmup,
                          int repeats);
[[nodiscard]] Probe probe_all_reduce(Communicator& communicator, std::size_t count, int warmup, int repeats);

/// busbw / algbw over `ranks` (docs/collectives.md): what each link carries of X when nothing is sent twice.
[[nodiscard]] constexpr double bus_factor(Collective collective, int ranks) {
  if (collective == Collective::all_reduce) return 2.0 * (ranks - 1) / ranks;
  if (collective == Collective::broadcast) return ranks > 1 ? 1.0 : 0.0;
  return static_cast<double>(ranks - 1) / ranks;
}
[[nodiscard]] constexpr double bus_factor(int ranks) { return bus_factor(Collective::all_reduce, ranks); }

}  // namespace paceline::comm
