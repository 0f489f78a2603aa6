#include "analysis/predict/collective_cost.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "base/error.h"

namespace paceline::analysis {
namespace {

/// The least part of a tree's pipeline: below it a part's bytes no longer matter.
constexpr double kSmallestPart = 16 << 10;
constexpr double kMostParts = 1 << 20;

double inverse(double rate) { return rate > 0 ? 1 / rate : 0; }

/// Links as one rank, or one node, sees them.
struct Level {
  double alpha = 0, message_s = 0, per_byte = 0;
  [[nodiscard]] double hop() const { return alpha + message_s; }
};

struct Parts {
  double latency_s = 0, transfer_s = 0;
  [[nodiscard]] double seconds() const { return latency_s + transfer_s; }
  Parts operator+(const Parts& other) const {
    return {latency_s + other.latency_s, transfer_s + other.transfer_s};
  }
};

/// Who takes part, and over what.
struct Scene {
  const Cluster& cluster;
  int workers = 1, nodes = 1, in_node = 1;
  Level node{}, network{};  ///< of a rank in its node; of a whole node, all of which leaves its switch
  /// The same for messages to all others alike, of which 1/S finds its end at its own of S switches.
  Level to_all{};
  double adding = 0;  ///< seconds for a byte
  /// A level between nodes as one of in_node ranks sees it that all send at once.
  [[nodiscard]] Level of_rank(const Level& level) const {
    return {level.alpha, level.message_s, level.per_byte * in_node};
  }
};

Scene scene_of(const Cluster& cluster, int workers) {
  const auto level = [](const Link& link, double rate) {
    return Level{link.latency_s.low, link.message_s.low, inverse(rate)};
  };
  Scene scene{.cluster = cluster, .workers = workers, .nodes = cluster.nodes_of(workers)};
  scene.in_node = (workers + scene.nodes - 1) / scene.nodes;
  scene.node = level(cluster.node_link, cluster.node_link.bytes_per_s.low);
  scene.network = level(cluster.network, cluster.network_bytes_per_s(scene.nodes));
  scene.to_all = level(cluster.network, cluster.network_bytes_per_s(1));
  if (const int radix = cluster.network.nodes_per_switch; radix > 0 && scene.nodes > radix) {
    const double switches = (scene.nodes + radix - 1) / radix;
    const double leaving = (1 - 1 / switches) * scene.nodes / (scene.nodes - 1);
    scene.to_all.per_byte *= std::max(1.0, cluster.network.oversubscription.low * leaving);
  }
  scene.adding = inverse(cluster.adds_bytes_per_s.low);
  return scene;
}

int levels_of(int ranks) { return std::bit_width(static_cast<unsigned>(ranks - 1)); }

Parts ring(const Level& level, int ranks, double bytes, double adding) {
  const double others = ranks - 1;
  return {2 * others * level.hop(), others / ranks * bytes * (2 * level.per_byte + adding)};
}

/// A ring through all workers, node by node.
Parts ring_over_nodes(const Scene& scene, double bytes) {
  const int in_node = scene.in_node, workers = scene.workers;
  const double steps = 2.0 * (workers - 1), part = bytes / workers;
  // The ways of 2(N-1) consecutive hops differ in how many of them leave a node.
  const double most = 2.0 * scene.nodes - (in_node == 1 ? 2 : in_node == 2 ? 1 : 0);
  const double fewest = 2.0 * scene.nodes - (in_node == 1 ? 2 : 1);
  // At its ends such a way has hops inside a node, in place of which a part may wait for those before it.
  const double loose = in_node == 2 ? 1 : std::max(0, in_node - 3);
  const bool ends_alone = in_node > 1 && workers - (scene.nodes - 1) * in_node == 1;
  const auto seconds = [&](double piece) {
    const double occupied_out = scene.network.message_s + piece * scene.network.per_byte;
    const double occupied_in = scene.node.message_s + piece * scene.node.per_byte;
    const double out = scene.network.alpha + occupied_out, in = scene.node.alpha + occupied_in;
    const double adds = piece * scene.adding;
    const double way = std::max(most * out + (steps - most - loose) * in + loose * std::max(in, occupied_out),
                                fewest * out + (steps - fewest) * in);
    // Over the slowest link all parts pass one after the other.
    return std::max({way + (workers - 1) * adds,
                     steps * occupied_out + (ends_alone ? 2 : 1) * scene.network.alpha + adds,
                     in_node > 1 ? steps * occupied_in + scene.node.alpha + adds : 0});
  };
  const double latency = seconds(0);
  return {latency, seconds(part) - latency};
}

Parts halving_doubling(const Level& level, int ranks, double bytes, double adding) {
  const int rounds = std::bit_width(static_cast<unsigned>(ranks)) - 1, even = 1 << rounds;
  Parts parts{2 * rounds * level.hop(), (even - 1.0) / even * bytes * (2 * level.per_byte + adding)};
  if (even == ranks) return parts;
  return parts + Parts{2 * level.hop(), bytes * (2 * level.per_byte + adding)};
}

/// Two trees over the nodes, a chain in each. One node: two trees over its workers.
Parts tree(const Scene& scene, double bytes) {
  const Level& across = scene.nodes > 1 ? scene.to_all : scene.node;
  const int ends = scene.nodes > 1 ? scene.nodes : scene.in_node;
  const int chain = scene.nodes > 1 ? scene.in_node - 1 : 0;
  const double levels = levels_of(ends) + chain;
  const double slowest = std::max(across.per_byte, chain > 0 ? scene.node.per_byte : 0);
  const double message = std::max(across.message_s, chain > 0 ? scene.node.message_s : 0);
  const auto seconds = [&](double parts, double part) {
    // A rank has two neighbours below, half of the part each, but for two trees of one rank each, and but for
    // the roots, which have one.
    const double of_root = across.message_s + part / 2 * across.per_byte;
    const double stage = (ends == 2 ? 1 : 2) * of_root;
    const double stage_in = 2 * scene.node.message_s + part * scene.node.per_byte;
    const double way =
        levels_of(ends) * (across.alpha + stage) - (stage - of_root) + chain * (scene.node.alpha + stage_in);
    const double others = (parts - 1) * std::max(stage, chain > 0 ? stage_in : 0);
    return 2 * (way + others) + (levels + parts - 1) * part * scene.adding;
  };
  const double latency = seconds(1, 0);
  if (bytes <= 0) return {latency, 0};
  const int parts = tree_parts(levels, bytes, message, inverse(slowest));
  return {latency, seconds(parts, bytes / parts) - latency};
}

Parts in_switch_of_node(const Scene& scene, double bytes) {
  return {scene.node.hop(), (1 + 1.0 / scene.in_node) * bytes * scene.node.per_byte};
}

Parts in_switch_of_network(const Scene& scene, const Level& level, double bytes) {
  const int radix = scene.cluster.network.nodes_per_switch;
  int tiers = 1;
  if (radix > 1)
    for (double reached = radix; reached < scene.nodes; reached *= radix) ++tiers;
  return {2 * tiers * level.hop(), bytes * level.per_byte};
}

Parts exchange(const Level& level, int processes, double bytes, double adding) {
  const double others = processes - 1;
  if (bytes <= kExchangeSmallBytes)
    return {level.alpha + others * level.message_s, others * bytes * (level.per_byte + adding)};
  const double blocks = std::ceil(bytes / kExchangeBlockBytes);
  return {(blocks + 1) * level.alpha + 2 * blocks * others * level.message_s,
          others / processes * bytes * (2 * level.per_byte + adding)};
}

Parts shared_memory(const Scene& scene, double bytes) {
  const double together = inverse(scene.cluster.node_link.total_bytes_per_s.low);
  return {2 * scene.node.hop(), 2 * bytes * std::max(scene.node.per_byte, scene.in_node * together)};
}

/// Reduce-scatter and all-gather in each node; between nodes `of_part`, of what one rank then has.
template <typename OfPart>
Parts hierarchical(const Scene& scene, double bytes, const OfPart& of_part) {
  const Parts inside = ring(scene.node, scene.in_node, bytes, scene.adding);
  return inside + of_part(bytes / scene.in_node);
}

Parts in_switch(const Scene& scene, double bytes) {
  const bool nodes_add = scene.cluster.node_link.in_switch;
  if (scene.nodes == 1) return in_switch_of_node(scene, bytes);
  const auto between = [&](double part) {
    const Level level = scene.of_rank(scene.to_all);
    if (scene.cluster.network.in_switch) return in_switch_of_network(scene, level, part);
    Scene of_ranks = scene;  // a tree between the ranks of one place in their nodes
    of_ranks.workers = scene.nodes;
    of_ranks.in_node = 1;
    of_ranks.to_all = level;
    return tree(of_ranks, part);
  };
  if (scene.in_node == 1) return between(bytes);
  if (!nodes_add) return hierarchical(scene, bytes, between);
  return in_switch_of_node(scene, bytes) + between(bytes / scene.in_node);
}

Parts parts_of(Algorithm algorithm, const Scene& scene, double bytes) {
  const bool one_level = scene.nodes == 1 || scene.in_node == 1;
  const Level& level = scene.nodes == 1 ? scene.node : scene.network;
  switch (algorithm) {
    case Algorithm::ring:
      return scene.nodes == 1 ? ring(level, scene.workers, bytes, scene.adding)
                              : ring_over_nodes(scene, bytes);
    case Algorithm::halving_doubling:
      if (one_level) return halving_doubling(level, scene.workers, bytes, scene.adding);
      return halving_doubling(scene.node, scene.in_node, bytes, scene.adding) +
             halving_doubling(scene.of_rank(scene.network), scene.nodes, bytes / scene.in_node, scene.adding);
    case Algorithm::tree:
      return tree(scene, bytes);
    case Algorithm::hierarchical:
      return hierarchical(scene, bytes, [&](double part) {
        return ring(scene.of_rank(scene.network), scene.nodes, part, scene.adding);
      });
    case Algorithm::in_switch:
      return in_switch(scene, bytes);
    case Algorithm::exchange: {
      const Parts between = exchange(scene.to_all, scene.nodes, bytes, scene.adding);
      return scene.in_node == 1 ? between : shared_memory(scene, bytes) + between;
    }
    case Algorithm::shared_memory:
      return shared_memory(scene, bytes);
    case Algorithm::automatic:
      break;
  }
  base::expects(false, "parts_of: an algorithm");
  return {};
}

double base_of(const Scene& scene) {
  return scene.nodes > 1 ? scene.cluster.network.base_s.low : scene.cluster.node_link.base_s.low;
}

AllReduceCost cost_of_formula(const Cluster& cluster, int workers, double bytes) {
  const Scene scene = scene_of(cluster, workers);
  Algorithm algorithm = algorithm_over(cluster.algorithm, scene.nodes, scene.in_node);
  Parts parts;
  if (algorithm != Algorithm::automatic) {
    parts = parts_of(algorithm, scene, bytes);
  } else {
    algorithm = Algorithm::ring;
    parts = parts_of(algorithm, scene, bytes);
    const auto consider = [&](Algorithm other) {
      const Parts others = parts_of(other, scene, bytes);
      if (others.seconds() >= parts.seconds()) return;
      algorithm = other;
      parts = others;
    };
    if (scene.nodes > 1) consider(Algorithm::tree);
    if (cluster.node_link.in_switch || (scene.nodes > 1 && cluster.network.in_switch))
      consider(Algorithm::in_switch);
  }
  return {.latency_s = base_of(scene) + parts.latency_s,
          .transfer_s = std::max(parts.transfer_s, 0.0),
          .algorithm = algorithm};
}

}  // namespace

int tree_parts(double levels, double bytes, double message_s, double bytes_per_s) {
  const double most = std::clamp(bytes / kSmallestPart, 1.0, kMostParts);
  if (message_s <= 0 || bytes_per_s <= 0) return static_cast<int>(most);
  const double best = std::sqrt((levels - 1) * bytes / (2 * message_s * bytes_per_s));
  return static_cast<int>(std::clamp(std::round(best), 1.0, most));
}

Algorithm algorithm_over(Algorithm asked, int nodes, int in_node) {
  if (asked == Algorithm::hierarchical && (nodes == 1 || in_node == 1)) return Algorithm::ring;
  if (asked == Algorithm::exchange && nodes == 1) return Algorithm::shared_memory;
  if (asked == Algorithm::shared_memory && nodes > 1) return Algorithm::exchange;
  return asked;
}

AllReduceCost formula_cost(const Cluster& cluster, int workers, double bytes) {
  base::expects(workers >= 1 && workers <= cluster.slots() && bytes >= 0,
                "formula_cost: 1 <= workers <= slots, bytes >= 0");
  if (workers == 1) return {};
  AllReduceCost cost = cost_of_formula(cluster, workers, bytes);
  cost.seconds = cost.latency_s + cost.transfer_s;
  return cost;
}

}  // namespace paceline::analysis
