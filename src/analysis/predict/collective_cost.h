#pragma once

/// How long an all-reduce takes in a cluster: closed forms of the algorithms, scaled to what was measured.
///
///   N, X   workers, and bytes of each
///   n, g   nodes, and workers in each of them: N / n, rounded up
///   alpha  seconds that a message travels; out, in: between nodes, inside a node
///   o      seconds for which a message occupies its sender and its receiver, besides its bytes
///   beta   bytes per second of a rank, one way; of a node, where r cards leave it: r cards' worth
///   gamma  bytes per second that a rank adds
///
///   ring               2(p-1) (alpha + o) + 2(p-1)/p X/beta + (p-1)/p X/gamma
///   over nodes         the longest way of a part over 2(N-1) hops, of which about 2n leave a node, or on
///                      which it waits for the parts before it
///   halving-doubling   2 log2 p (alpha + o) + 2(p-1)/p X/beta + (p-1)/p X/gamma; the p - 2^k ranks beyond a
///                      power of two hand theirs over before and get the sum after: + 2 (alpha + o + X/beta)
///                      + X/gamma
///   tree               two binary trees, each with half of X in m parts: up, then down, each
///                      L alpha + (L + m - 3/2) (2 o + X/(m beta)), L = ceil(log2 p) (two or three ranks:
///                      less); over nodes p = n, and in each a chain of g - 1 hops; (L - 1/2) X/(m gamma)
///                      once
///   hierarchical       2(g-1) (alpha_in + o) + 2(g-1)/g X/beta_in, and between nodes the ring of X/g with
///                      r/g cards
///   in the switch      node: alpha + (1 + 1/g) X/beta; between nodes, k to a switch:
///                      2 ceil(log_k n) alpha + X/beta
///   exchange           blocks of 1 MiB, B of them: (B + 1) alpha + 2 B (n-1) o + 2(n-1)/n X/beta
///                      + (n-1)/n X/gamma; up to 8192 B: alpha + (n-1) (o + X/beta + X/gamma)
///   shared memory      2 alpha + 2 X/beta, or if it is longer, 2 g X over what all ranks share
///   --emulate-link     2(N-1) alpha + 2(N-1)/N X/beta more, as comm/emulate.h
///
/// Where nodes are spread over S switches, what leaves a switch is divided by the oversubscription: all of a
/// ring, 1 - 1/S of an exchange. Of pairs and of trees all of it counts, but half of trees over two switches,
/// so these may be given too much, by up to 2.6 times (tests/analysis/predict/simulate_messages_test.cc).
///
/// Sources   Thakur, Rabenseifner, Gropp (2005): ring, halving-doubling. Sanders, Speck, Traeff (2009): two
///           trees; NCCL's constants are those of its graph/tuning.cc. exchange.cc and direct.cc in
///           comm/algorithms: this program's own.

#include "analysis/predict/cluster.h"

namespace paceline::analysis {

struct AllReduceCost {
  double seconds = 0;                          ///< latency, transfer and emulated
  double latency_s = 0;                        ///< what a message of no bytes would take
  double transfer_s = 0;                       ///< moving and adding bytes
  double emulated_s = 0;                       ///< of `--emulate-link`'s, which begins when the rest is done
  Algorithm algorithm = Algorithm::automatic;  ///< that was taken; automatic: there was nothing to send
};

/// From the formulas and, where they are attached, the timed all-reduces. The cluster's ranges are fixed, by
/// draw() or middle().
///
/// Cost      some 100 ns; allocates nothing
/// Requires  1 <= workers <= cluster.slots(); bytes >= 0
[[nodiscard]] AllReduceCost all_reduce_cost(const Cluster& cluster, int workers, double bytes);

/// From the formulas alone, without an emulated link.
[[nodiscard]] AllReduceCost formula_cost(const Cluster& cluster, int workers, double bytes);

/// The parts of a tree's pipeline.
///
/// Requires  `levels` hops on the longest way, bytes > 0
[[nodiscard]] int tree_parts(double levels, double bytes, double message_s, double bytes_per_s);

/// The algorithm that is meant if `asked` is asked for over so many nodes, with so many workers in each: a
/// hierarchy of one level is a ring.
[[nodiscard]] Algorithm algorithm_over(Algorithm asked, int nodes, int in_node);

inline constexpr double kExchangeBlockBytes = 1 << 20,
                        kExchangeSmallBytes = 8192;  // comm/algorithms/exchange.h

}  // namespace paceline::analysis
