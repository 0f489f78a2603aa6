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
///
/// With `per_host` g, ranks 0 to g-1 are as if on one host, and so on. N then counts hosts, and inside a host
/// an all-reduce takes 2(g-1) inside_latency + 2(g-1)/g X / inside_bandwidth more (a hierarchy). With
/// `per_switch` k, the bandwidth of more than k ends is divided by `oversubscription`, as if other jobs
/// filled the links between switches.
struct EmulatedLink {
  double latency_s = 0;
  double bytes_per_s = 0;      ///< 0: no limit
  bool between_hosts = false;  ///< N is the number of hosts, not ranks: inside a host nothing is slower
  int per_host = 0;            ///< ranks; 0: every rank is a host of its own
  double inside_latency_s = 0;
  double inside_bytes_per_s = 0;  ///< 0: no limit
  int per_switch = 0;             ///< ends; 0: all are behind one
  double oversubscription = 1;
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
  /// A reduction begins on the link when its last rank has posted it, and the real sum is hidden in the
  /// link's time: for ranks that are as if on machines of their own (ghosts). All ranks are threads of this
  /// process.
  bool hides_sums = false;
  [[nodiscard]] bool any() const { return link || straggler; }
};

/// Parses "latency=50us,bandwidth=1GB/s,between=hosts" (or ranks), with per-host=, inside-latency=,
/// inside-bandwidth=, per-switch= and oversubscription= where they are given. Units: base/units.h.
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
