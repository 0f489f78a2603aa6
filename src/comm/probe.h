#pragma once

/// Measures a collective at one message size, and checks its results element by element.

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

#include "comm/communicator.h"

namespace paceline::comm {

enum class Collective { all_reduce, reduce_scatter, all_gather, broadcast };
[[nodiscard]] std::string_view name(Collective collective);  ///< "all_gather"

/// What is measured. In place: the result overwrites the input; for all_gather the input is part of the
/// result.
struct Trial {
  Collective collective = Collective::all_reduce;
  bool in_place = true;
};
/// Every collective in each of its forms; a broadcast is always in place.
inline constexpr std::array kTrials{
    Trial{Collective::all_reduce, true},     Trial{Collective::all_reduce, false},
    Trial{Collective::reduce_scatter, true}, Trial{Collective::reduce_scatter, false},
    Trial{Collective::all_gather, true},     Trial{Collective::all_gather, false},
    Trial{Collective::broadcast, true}};

struct Probe {
  std::size_t bytes =
      0;  ///< X: of the buffer (all-reduce, broadcast), the result (all-gather) or the input (reduce-scatter)
  std::vector<double> seconds;  ///< per repetition, of the slowest rank; the same on every rank
  bool correct = true;          ///< whether every element was right, on every rank, in every repetition
};

/// Times `repeats` collectives of about `count` floats (reduce_scatter, all_gather: rounded down to a
/// multiple of the ranks) after `warmup` untimed ones. A barrier before each keeps waiting for late ranks out
/// of the times. Buffers are filled again before each, as a backward pass would, and every result is compared
/// with a closed form; inputs that are not in place must be unchanged.
///
/// Errors   as the communicator's
/// Threads  collective: every rank calls it with the same arguments
[[nodiscard]] Probe probe(Communicator& communicator, Trial trial, std::size_t count, int warmup,
                          int repeats);
/// The buffers of a probe: at least `count` floats each, in one memory.
struct ProbeArrays {
  base::Array whole, apart;
};
/// The same in the first parts of `arrays`, which may lie on a device. There a collective ends when the
/// device has finished it.
[[nodiscard]] Probe probe(Communicator& communicator, Trial trial, std::size_t count, int warmup, int repeats,
                          const ProbeArrays& arrays);

/// busbw / algbw over `ranks` (docs/collectives.md): the part of X that each link carries if nothing is sent
/// twice.
[[nodiscard]] constexpr double bus_factor(Collective collective, int ranks) {
  if (collective == Collective::all_reduce) return 2.0 * (ranks - 1) / ranks;
  if (collective == Collective::broadcast) return ranks > 1 ? 1.0 : 0.0;
  return static_cast<double>(ranks - 1) / ranks;
}
[[nodiscard]] constexpr double bus_factor(int ranks) { return bus_factor(Collective::all_reduce, ranks); }

}  // namespace paceline::comm
