#include "analysis/predict/collective_cost.h"

#include <algorithm>

#include "base/error.h"

namespace paceline::analysis {
namespace {

AllReduceCost ring(const Link& link, double beta, int ranks, double bytes) {
  const double steps = 2.0 * (ranks - 1);
  return {.latency_s = link.base_s.low + steps * link.latency_s.low,
          .transfer_s = beta > 0 ? steps / ranks * bytes / beta : 0,
          .algorithm = Algorithm::ring};
}

}  // namespace

AllReduceCost all_reduce_cost(const Cluster& cluster, int workers, double bytes) {
  base::expects(workers >= 1 && workers <= cluster.slots(), "all_reduce_cost: 1 <= workers <= slots");
  AllReduceCost cost;
  if (workers == 1) return cost;
  const int nodes = cluster.nodes_of(workers), in_node = std::min(workers, cluster.workers_per_node);
  if (nodes == 1) {
    cost = ring(cluster.node_link, cluster.node_link.bytes_per_s.low, in_node, bytes);
  } else {
    const double beta = cluster.network.bytes_per_s.low * cluster.network.nics_per_node / in_node;
    cost = ring(cluster.network, beta, nodes, bytes / in_node);
    if (in_node > 1) {
      const auto inside = ring(cluster.node_link, cluster.node_link.bytes_per_s.low, in_node, bytes);
      cost.latency_s += inside.latency_s;
      cost.transfer_s += inside.transfer_s;
      cost.algorithm = Algorithm::hierarchical;
    }
  }
  if (cluster.emulated) {
    const int ends = cluster.emulated->between_nodes ? nodes : workers;
    const double beta = cluster.emulated->bytes_per_s.low;
    cost.emulated_s =
        2.0 * (ends - 1) * (cluster.emulated->latency_s.low + (beta > 0 ? bytes / ends / beta : 0));
  }
  cost.seconds = cost.latency_s + cost.transfer_s + cost.emulated_s;
  return cost;
}

}  // namespace paceline::analysis
