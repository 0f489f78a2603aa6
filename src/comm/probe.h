#pragma once

/// What a communicator reaches at one message size: timed, and checked element by element.

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

#include "comm/communicator.h"

namespace paceline::comm {

enum class Collective { all_reduce, reduce_scatter, all_gather, broadcast };
[[nodiscard]] std::string_view name(Collective collective);  ///< "all_gather"

/// What can be timed. In place: the result overwrites what was given, or (all_gather) what is given lies in
/// the result.
struct Trial {
  Collective collective = Collective::all_reduce;
  bool in_place = true;
};
/// Every collective in every form that it has: a broadcast has no result apart from what was given.
inline constexpr std::array kTrials{
    Trial{Collective::all_reduce, true},     Trial{Collective::all_reduce, false},
    Trial{Collective::reduce_scatter, true}, Trial{Collective::reduce_scatter, false},
    Trial{Collective::all_gather, true},     Trial{Collective::all_gather, false},
    Trial{Collective::broadcast, true}};

struct Probe {
  std::size_t bytes =
      0;  ///< X: of one all-reduce or broadcast, of an all-gather's result, of what a reduce-scatter sums
  std::vector<double> seconds;  ///< each repetition, the slowest rank's; the same on every rank
  bool correct = true;          ///< every element on every rank, in every repetition
};

/// Times `repeats` collectives of about `count` floats (reduce_scatter, all_gather: rounded down to a
/// multiple of the ranks) after `warmup` more; a barrier before each, so that nobody's time holds waiting for
/// a late rank. Buffers are filled anew in between, as a backward pass would, and every result is compared
/// with a closed form; what was given out of place must still be there.
///
/// Errors   as the communicator's
/// Threads  collective: every rank calls it with the same arguments
[[nodiscard]] Probe probe(Communicator& communicator, Trial trial, std::size_t count, int warmup,
                          int repeats);
/// Where a probe's values lie: at least `count` floats each, in one memory.
struct ProbeArrays {
  base::Array whole, apart;
};
/// The same in the first parts of `arrays`, which may lie on a device. A collective's time there ends when
/// the device is through with it.
[[nodiscard]] Probe probe(Communicator& communicator, Trial trial, std::size_t count, int warmup, int repeats,
                          const ProbeArrays& arrays);
[[nodiscard]] Probe probe_all_reduce(Communicator& communicator, std::size_t count, int warmup, int repeats);

/// busbw / algbw over `ranks` (docs/collectives.md): what each link carries of X when nothing is sent twice.
[[nodiscard]] constexpr double bus_factor(Collective collective, int ranks) {
  if (collective == Collective::all_reduce) return 2.0 * (ranks - 1) / ranks;
  if (collective == Collective::broadcast) return ranks > 1 ? 1.0 : 0.0;
  return static_cast<double>(ranks - 1) / ranks;
}
[[nodiscard]] constexpr double bus_factor(int ranks) { return bus_factor(Collective::all_reduce, ranks); }

}  // namespace paceline::comm
