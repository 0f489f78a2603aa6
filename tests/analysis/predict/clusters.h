#pragma once

/// Clusters for tests of predictions.

#include "analysis/predict/cluster.h"

namespace paceline::analysis {

/// Nodes of `in_node` workers with round figures: 200 GB/s and 2 us inside, `nics` cards of 10 GB/s and 10 us
/// between them.
inline Cluster round_cluster(int in_node, Algorithm algorithm, int nics = 1) {
  Cluster cluster;
  cluster.name = "round";
  cluster.nodes = 4096;
  cluster.workers_per_node = in_node;
  cluster.algorithm = algorithm;
  cluster.node_link.bytes_per_s = Range::of(200e9);
  cluster.node_link.latency_s = Range::of(2e-6);
  cluster.network.bytes_per_s = Range::of(10e9);
  cluster.network.latency_s = Range::of(10e-6);
  cluster.network.nics_per_node = nics;
  return cluster;
}

}  // namespace paceline::analysis
