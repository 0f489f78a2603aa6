#pragma once

/// A communicator around any other that behaves as a slower link would, or as a slower rank: so that one
/// sees, without a cluster, what one would do, and every diagnosis can be tested against a cause that is
/// known.
///
/// What is emulated is time only: sums, their bits, errors and counted bytes are those of the communicator
/// inside.

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "comm/communicator.h"

namespace paceline::comm {

/// A link between every two neighbours of a ring: an all-reduce of X bytes over N ranks takes
///     2(N-1) latency + 2(N-1)/N X / bandwidth
/// after the inner one is complete, and the one before it has left the link. A reduce-scatter, a broadcast or
/// an all-gather of X bytes (of the longer side) takes (N-1) latency + (N-1)/N X / bandwidth, a barrier
/// 2(N-1) latency. A scatter, a gather or a reduce of X bytes a rank takes (N-1) (latency + X / bandwidth):
/// all of it passes the link of the rank in the middle.
struct EmulatedLink {
  double latency_s = 0;
  double bytes_per_s = 0;      ///< 0: no limit
  bool between_hosts = false;  ///< N counts hosts, not ranks: inside a host nothing is slower
};

/// One rank whose every step of its own work (data, forward, backward, update) takes `slower` times as long.
struct EmulatedStraggler {
  int rank = 0;
  double slower = 1;
};

struct Emulation {
  std::optional<EmulatedLink> link;
  std::optional<EmulatedStraggler> straggler;
  int hosts = 1;  ///< of the run
  [[nodiscard]] bool any() const { return link || straggler; }
};

/// "latency=50us,bandwidth=1GB/s,between=hosts" (or ranks): units ns, us, ms, s and B/s, kB/s, MB/s, GB/s, or
/// kbit/s, Mbit/s, Gbit/s. Errors   Error(usage), the end of a sentence that begins with the option's name
[[nodiscard]] EmulatedLink parse_link(std::string_view text);
/// "rank=3,slower=1.3x"
[[nodiscard]] EmulatedStraggler parse_straggler(std::string_view text);

[[nodiscard]] double link_seconds(const EmulatedLink& link, int ranks,
                                  std::size_t bytes);  ///< of an all-reduce

/// Wraps each of a process's communicators; nothing is wrapped without an emulation. A straggler that is no
/// rank of theirs slows nobody (the baseline of one worker).
[[nodiscard]] std::vector<std::unique_ptr<Communicator>> emulate(
    std::vector<std::unique_ptr<Communicator>> inner, const Emulation& emulation);

}  // namespace paceline::comm
