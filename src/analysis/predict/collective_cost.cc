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
  int switches = 1;   ///< that the nodes are spread over in turn
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
    scene.switches = (scene.nodes + radix - 1) / radix;
    const double leaving = (1 - 1.0 / scene.switches) * scene.nodes / (scene.nodes - 1);
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

/// A ring through all workers, node by node. A part of each of the 2(N-1) steps either moves on to the next
/// rank, or waits at a card for the part before it; the time is that of the longest such way, which has one
/// of the forms below. The first N-1 steps add.
Parts ring_over_nodes(const Scene& scene, double bytes) {
  const int g = scene.in_node, n = scene.nodes, others = scene.workers - 1;
  const double steps = 2.0 * others;
  // Ways that always move differ in how many of their hops leave a node.
  const double most = 2.0 * n - (g == 1 ? 2 : g == 2 ? 1 : 0), fewest = 2.0 * n - (g == 1 ? 2 : 1);
  // A node of one worker, beside others of more, has two cards' hops in a row.
  const bool is_one_alone = g > 1 && scene.workers - (n - 1) * g == 1;
  // Hops inside a node at the ends of such a way, in place of which it may wait.
  const double loose = g == 2 ? (is_one_alone ? 0 : 1) : std::max(0, g - 3);
  const auto seconds = [&](double part) {
    const double held_out = scene.network.message_s + part * scene.network.per_byte;
    const double held_in = scene.node.message_s + part * scene.node.per_byte;
    const double out = scene.network.alpha + held_out, in = scene.node.alpha + held_in;
    const double add = part * scene.adding, adds = others * add;
    double longest =
        std::max(most * out + (steps - most - loose) * in + loose * std::max(in, held_out) + adds,
                 fewest * out + (steps - fewest) * in + adds);
    const auto or_else = [&](double way) { longest = std::max(longest, way); };
    // Waits in all steps; moves in those that add, and then waits, in three ways to arrive at a card.
    or_else(steps * held_out + (is_one_alone ? 2 : 1) * scene.network.alpha + (is_one_alone ? add : 0));
    or_else((n - 1) * out + (others - n + 1) * in + adds + others * held_out + scene.network.alpha);
    or_else((n - 1) * (out + (g - 1) * in + g * add) + (steps - (n - 1) * g - 1) * held_out + out);
    if (g > 1) {
      or_else(n * out + (others + 1 - n) * in + adds + (others - 1) * held_out + scene.network.alpha);
      or_else(steps * held_in + scene.node.alpha);
    }
    return longest;
  };
  const double latency = seconds(0);
  return {latency, seconds(bytes / scene.workers) - latency};
}

Parts halving_doubling(const Level& level, int ranks, double bytes, double adding) {
  const int rounds = std::bit_width(static_cast<unsigned>(ranks)) - 1, even = 1 << rounds;
  Parts parts{2 * rounds * level.hop(), (even - 1.0) / even * bytes * (2 * level.per_byte + adding)};
  if (even == ranks) return parts;
  return parts + Parts{2 * level.hop(), bytes * (2 * level.per_byte + adding)};
}

/// Two trees over the nodes, a chain in each. One node: two trees over its workers.
Parts tree(const Scene& scene, double bytes) {
  // Leaves have their parent at the other of two switches, but all others theirs at their own.
  const bool half_leaves = scene.switches == 2 && scene.nodes % 2 == 0;
  const Level& across = scene.nodes == 1 ? scene.node : half_leaves ? scene.to_all : scene.network;
  const int ends = scene.nodes > 1 ? scene.nodes : scene.in_node;
  const int chain = scene.nodes > 1 ? scene.in_node - 1 : 0, levels = levels_of(ends);
  // A rank has two neighbours below, with half of a part each. A root has one, and so has rank 2^k of 2^k
  // + 1.
  const bool has_single = ends > 3 && std::has_single_bit(static_cast<unsigned>(ends - 1));
  const auto seconds = [&](double parts, double part) {
    const double half = across.message_s + part / 2 * across.per_byte;
    const double stage = (ends == 2 ? 1 : 2) * half;
    double phase = levels * (across.alpha + stage) + (parts - 1) * stage;
    if (ends > 3) phase -= (has_single ? 2 : 1) * half;
    if (ends == 3) phase = std::max(across.alpha + parts * stage, 2 * across.alpha + (parts + 1) * half);
    double adds = ends == 3 ? 1 : levels - 0.5;
    if (chain > 0) {
      const double stage_in = 2 * scene.node.message_s + part * scene.node.per_byte;
      phase += chain * (scene.node.alpha + stage_in) + (parts - 1) * std::max(0.0, stage_in - stage);
      adds = 0.5 * chain + 1.5 * (levels - 1) + 1;  // the first rank of a node adds its chain's too
    }
    return 2 * phase + adds * part * scene.adding;
  };
  const double latency = seconds(1, 0);
  if (bytes <= 0) return {latency, 0};
  const double slowest = std::max(across.per_byte, chain > 0 ? scene.node.per_byte : 0);
  const double message = std::max(across.message_s, chain > 0 ? scene.node.message_s : 0);
  const int parts = tree_parts(levels + chain, bytes, message, inverse(slowest));
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
    of_ranks.network = of_ranks.to_all = level;
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
  return {.latency_s = cluster.link_of(workers).base_s.low + parts.latency_s,
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
