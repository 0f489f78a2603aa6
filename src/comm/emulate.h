#pragma once

/// Wraps a communicator and delays it like a slower link or a slower rank. So users can see, without a
/// cluster, what a cluster would do, and tests can check every diagnosis against a known cause.
///
/// Only time is emulated: sums, their bits, errors and counted bytes are those of the wrapped communicator.

#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "comm/communicator.h"

namespace paceline::comm {

/// A link between neighbours of a ring. An all-reduce of X bytes over N ranks takes
///     2(N-1) latency + 2(N-1)/N X / bandwidth
/// longer; it begins when the wrapped one is complete and the previous one has left the link. A
/// reduce-scatter, a broadcast or an all-gather of X bytes (of the longer side) takes (N-1) latency +
/// (N-1)/N X / bandwidth, a barrier 2(N-1) latency. A scatter, gather or reduce of X bytes per rank takes
/// (N-1) (latency + X / bandwidth), since all of it passes the link of the central rank.
struct EmulatedLink {
  double latency_s = 0;
  double bytes_per_s = 0;      ///< 0: no limit
  bool between_hosts = false;  ///< N is the number of hosts, not ranks: inside a host nothing is slower
};

/// One rank whose own work (data, forward, backward, update) takes `slower` times as long in every step.
struct EmulatedStraggler {
  int rank = 0;
  double slower = 1;
};

struct Emulation {
  std::optional<EmulatedLink> link;
  std::optional<EmulatedStraggler> straggler;
  int hosts = 1;  ///< hosts of the run
  [[nodiscard]] bool any() const { return link || straggler; }
};

/// Parses "latency=50us,bandwidth=1GB/s,between=hosts" (or ranks). Units: ns, us, ms, s; B/s, kB/s, MB/s,
/// GB/s, kbit/s, Mbit/s, Gbit/s.
///
/// Errors   Error(usage): the end of a sentence that begins with the option's name
[[nodiscard]] EmulatedLink parse_link(std::string_view text);
/// Parses "rank=3,slower=1.3x".
[[nodiscard]] EmulatedStraggler parse_straggler(std::string_view text);

[[nodiscard]] double link_seconds(const EmulatedLink& link, int ranks,
                                  std::size_t bytes);  ///< extra time of an all-reduce

/// Wraps each of a process's communicators; without an emulation it returns them unchanged. A straggler whose
/// rank does not exist has no effect (the baseline of one worker).
[[nodiscard]] std::vector<std::unique_ptr<Communicator>> emulate(
    std::vector<std::unique_ptr<Communicator>> inner, const Emulation& emulation);

}  // namespace paceline::comm
