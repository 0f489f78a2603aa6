#include "analysis/predict/cluster.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"

namespace paceline::analysis {
namespace {

/// Calls `fix` with every range of `cluster`.
template <typename Fix>
void for_each_range(Cluster& cluster, const Fix& fix) {
  fix(cluster.worker_speed);
  fix(cluster.worker_spread);
  fix(cluster.adds_bytes_per_s);
  for (Link* link : cluster.links()) {
    fix(link->bytes_per_s);
    fix(link->latency_s);
    fix(link->base_s);
    fix(link->message_s);
    fix(link->total_bytes_per_s);
  }
  fix(cluster.network.oversubscription);
  if (cluster.emulated) {
    fix(cluster.emulated->latency_s);
    fix(cluster.emulated->bytes_per_s);
    fix(cluster.emulated->inside_latency_s);
    fix(cluster.emulated->inside_bytes_per_s);
  }
  if (cluster.storage) {
    fix(cluster.storage->shared_bytes_per_s);
    fix(cluster.storage->node_bytes_per_s);
    fix(cluster.storage->opens_per_s);
  }
}

constexpr std::array<std::string_view, kAlgorithms> kNames{
    "auto", "ring", "halving-doubling", "tree", "hierarchical", "in-switch", "exchange", "shared-memory"};

}  // namespace

std::string_view name(Algorithm algorithm) { return kNames[static_cast<std::size_t>(algorithm)]; }

std::optional<Algorithm> find_algorithm(std::string_view name) {
  const auto found = std::ranges::find(kNames, name);
  if (found == kNames.end()) return std::nullopt;
  return static_cast<Algorithm>(found - kNames.begin());
}

std::vector<std::string> algorithm_names() { return {kNames.begin(), kNames.end()}; }

Cluster draw(const Cluster& cluster, base::Rng& random) {
  Cluster drawn = cluster;
  for_each_range(drawn, [&](Range& range) {
    if (!range.is_fixed()) range = Range::of(range.low + (range.high - range.low) * random.uniform_f64());
  });
  for (Link* link : drawn.links())
    if (link->measured != nullptr)
      link->other_ranks_factor *= std::exp(link->measured_spread * random.normal());
  return drawn;
}

Cluster middle(const Cluster& cluster) {
  Cluster fixed = cluster;
  for_each_range(fixed, [](Range& range) { range = Range::of(range.middle()); });
  return fixed;
}

void require_slots(const Cluster& cluster, std::int64_t workers) {
  if (workers <= cluster.slots()) return;
  base::fail(
      base::ErrorKind::usage,
      "{}: {} workers need as many slots, but {} nodes with {} workers each have {}; raise nodes, or ask "
      "for fewer workers",
      cluster.name, workers, cluster.nodes, cluster.workers_per_node, cluster.slots());
}

}  // namespace paceline::analysis
