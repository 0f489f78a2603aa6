#pragma once

/// How long an all-reduce takes in a cluster: closed forms of the algorithms, scaled to what was measured.
///
///   p      ranks            X      bytes of one rank
///   n, g   nodes, and workers in each of them
///   alpha  seconds of a hop  beta  bytes per second of a rank, one way
///   gamma  bytes per second that a rank adds
///
/// All figures are of a cluster whose ranges are fixed: by draw() or middle().

#include "analysis/predict/cluster.h"

namespace paceline::analysis {

struct AllReduceCost {
  double seconds = 0;     ///< latency, transfer and emulated
  double latency_s = 0;   ///< what a message of no bytes would take
  double transfer_s = 0;  ///< moving and adding bytes
  double emulated_s = 0;  ///< of the link that `--emulate-link` adds, which begins when the rest is done
  Algorithm algorithm = Algorithm::automatic;  ///< the one that was taken; automatic: nothing to send
};

/// Cost     some 100 ns; allocates nothing
///
/// Requires  1 <= workers <= cluster.slots(); fixed ranges
[[nodiscard]] AllReduceCost all_reduce_cost(const Cluster& cluster, int workers, double bytes);

}  // namespace paceline::analysis
