#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>

#include "analysis/predict/collective_cost.h"
#include "analysis/predict/simulate_messages.h"
#include "base/error.h"

namespace paceline::analysis {
namespace {

/// Who sends to whom, and what a message occupies of its ports.
struct Layout {
  const Cluster& cluster;
  int workers = 1, nodes = 1, in_node = 1;
  double adding = 0;  ///< seconds for a byte

  Layout(const Cluster& of, int ranks) : cluster(of), workers(ranks), nodes(of.nodes_of(ranks)) {
    in_node = (ranks + nodes - 1) / nodes;
    if (of.adds_bytes_per_s.low > 0) adding = 1 / of.adds_bytes_per_s.low;
  }
  [[nodiscard]] int node_of(int rank) const { return rank / in_node; }
  /// `bytes`, and those that the level's port could move while the message occupies it besides. `sharing`:
  /// the ranks of a node that send at once.
  [[nodiscard]] double occupied(int from, int to, double bytes, int sharing = 1) const {
    if (node_of(from) == node_of(to))
      return bytes + cluster.node_link.message_s.low * cluster.node_link.bytes_per_s.low;
    return bytes + cluster.network.message_s.low * cluster.network_bytes_per_s(nodes) / sharing;
  }
};

/// Steps `begin` to `end` of a ring of `ranks` that passes `part` bytes on in each; the first
/// `ranks.size() - 1` steps add. Returns each rank's last message received. `first`: what each rank's first
/// message waits for (-1: nothing), and how long for adding.
std::vector<int> add_ring(MessageSchedule& schedule, const Layout& layout, const std::vector<int>& ranks,
                          double part, bool adds, bool spreads, const std::vector<int>& first,
                          double first_wait, int sharing = 1) {
  const int count = static_cast<int>(ranks.size());
  const int steps = ((adds ? 1 : 0) + (spreads ? 1 : 0)) * (count - 1);
  std::vector<int> received(ranks.size(), -1), sent(ranks.size(), -1);
  for (int step = 0; step < steps; ++step) {
    std::vector<int> now(ranks.size());
    for (int i = 0; i < count; ++i) {
      const auto from = static_cast<std::size_t>(i), to = static_cast<std::size_t>((i + 1) % count);
      const bool was_added = adds && step >= 1 && step <= count - 1;
      const double wait = step == 0 ? first_wait : was_added ? part * layout.adding : 0;
      const int message =
          schedule.send(ranks[from], ranks[to], layout.occupied(ranks[from], ranks[to], part, sharing), wait);
      schedule.after_arrival(message, step == 0 ? first[from] : received[from]);
      schedule.after_sending(message, sent[from]);
      now[to] = message;
      sent[from] = message;
    }
    received = now;
  }
  return received;
}

void add_flat_ring(MessageSchedule& schedule, const Layout& layout, double bytes) {
  std::vector<int> ranks(static_cast<std::size_t>(layout.workers));
  std::iota(ranks.begin(), ranks.end(), 0);
  (void)add_ring(schedule, layout, ranks, bytes / layout.workers, true, true,
                 std::vector<int>(ranks.size(), -1), 0);
}

/// Requires  workers = nodes * in_node
void add_hierarchy(MessageSchedule& schedule, const Layout& layout, double bytes) {
  const int g = layout.in_node, n = layout.nodes;
  const double part = bytes / g;
  std::vector<int> received(static_cast<std::size_t>(layout.workers), -1);
  const auto ring_of = [&](int begin, int count, int stride, double piece, bool adds, bool spreads,
                           double wait, int sharing) {
    std::vector<int> ranks, first;
    for (int i = 0; i < count; ++i) {
      ranks.push_back(begin + i * stride);
      first.push_back(received[static_cast<std::size_t>(ranks.back())]);
    }
    const auto last = add_ring(schedule, layout, ranks, piece, adds, spreads, first, wait, sharing);
    for (std::size_t i = 0; i < ranks.size(); ++i) received[static_cast<std::size_t>(ranks[i])] = last[i];
  };
  for (int node = 0; node < n; ++node) ring_of(node * g, g, 1, part, true, false, 0, 1);
  for (int place = 0; place < g; ++place) ring_of(place, n, g, part / n, true, true, part * layout.adding, g);
  for (int node = 0; node < n; ++node) ring_of(node * g, g, 1, part, false, true, 0, 1);
}

/// Rounds of pairs: partner = rank xor 2^i, halves of what is left.
void add_halving_doubling(MessageSchedule& schedule, const Layout& layout, double bytes) {
  const int rounds = std::bit_width(static_cast<unsigned>(layout.workers)) - 1, even = 1 << rounds;
  const int beyond = layout.workers - even;
  const int near_rounds =
      layout.nodes == 1 ? rounds : std::countr_zero(static_cast<unsigned>(layout.in_node));
  std::vector<int> before(static_cast<std::size_t>(layout.workers), -1);
  const auto send = [&](int from, int to, double part, double after_wait, int sharing) {
    const int message = schedule.send(from, to, layout.occupied(from, to, part, sharing), after_wait);
    schedule.after_arrival(message, before[static_cast<std::size_t>(from)]);
    // A message is only sent to a rank that is in the same round.
    schedule.after_arrival(message, before[static_cast<std::size_t>(to)]);
    return message;
  };
  // Ranks beyond the power of two hand over before, and get the sum after.
  for (int i = 0; i < beyond; ++i) before[static_cast<std::size_t>(i)] = send(even + i, i, bytes, 0, 1);
  const auto round = [&](int i, double part, bool was_added, double added) {
    std::vector<int> now(before);
    for (int rank = 0; rank < even; ++rank)
      now[static_cast<std::size_t>(rank ^ (1 << i))] =
          send(rank, rank ^ (1 << i), part, was_added ? added * layout.adding : 0,
               i < near_rounds ? 1 : layout.in_node);
    before = now;
  };
  double part = bytes;
  for (int i = 0; i < rounds; ++i) {
    const double added = i == 0 ? (beyond > 0 ? bytes : 0) : part;
    part /= 2;
    round(i, part, true, added);
  }
  for (int i = rounds - 1; i >= 0; --i) {
    round(i, part, i == rounds - 1, part);
    part *= 2;
  }
  for (int i = 0; i < beyond; ++i) (void)send(i, even + i, bytes, 0, 1);
}

/// NCCL's first tree: the parent of `rank`, -1 for rank 0. Odd ranks are leaves.
int parent_in_tree(int rank, int ranks) {
  if (rank == 0) return -1;
  const int bit = rank & -rank;
  const int up = (rank ^ bit) | (bit << 1);
  return up < ranks ? up : rank ^ bit;
}

/// The parent of each rank in tree 0 or 1, the second of which exchanges leaves and others. Over nodes: trees
/// of the first ranks of the nodes, and a chain in each node.
std::vector<int> tree_parents(const Layout& layout, int tree) {
  const bool over_nodes = layout.nodes > 1;
  const int count = over_nodes ? layout.nodes : layout.workers, stride = over_nodes ? layout.in_node : 1;
  std::vector<int> parents(static_cast<std::size_t>(layout.workers), -1);
  for (int i = 0; i < count; ++i) {
    const auto renamed = [&](int place) {
      if (tree == 0) return place;
      return count % 2 == 0 ? count - 1 - place : (place + count - 1) % count;
    };
    const auto original = [&](int name) {
      if (tree == 0) return name;
      return count % 2 == 0 ? count - 1 - name : (name + 1) % count;
    };
    const int up = parent_in_tree(renamed(i), count);
    parents[static_cast<std::size_t>(i * stride)] = up < 0 ? -1 : original(up) * stride;
  }
  if (over_nodes)
    for (int rank = 0; rank < layout.workers; ++rank)
      if (rank % stride != 0) parents[static_cast<std::size_t>(rank)] = rank - 1;
  return parents;
}

/// One tree with `bytes` in `parts` parts: all of them up to the root, then all of them down.
void add_tree(MessageSchedule& schedule, const Layout& layout, const std::vector<int>& parents, double bytes,
              int parts) {
  const auto count = parents.size();
  const double part = bytes / parts;
  std::vector<std::vector<int>> children(count);
  int root = 0;
  for (std::size_t i = 0; i < count; ++i) {
    if (parents[i] < 0)
      root = static_cast<int>(i);
    else
      children[static_cast<std::size_t>(parents[i])].push_back(static_cast<int>(i));
  }
  std::vector<int> from_root{root};  // every rank after its parent
  for (std::size_t i = 0; i < from_root.size(); ++i)
    for (const int child : children[static_cast<std::size_t>(from_root[i])]) from_root.push_back(child);
  std::vector<int> up(count, -1), down(count, -1);
  const auto adding = [&](std::size_t rank) {
    return static_cast<double>(children[rank].size()) * part * layout.adding;
  };
  const int all_summed = schedule.send(root, root, 0, adding(static_cast<std::size_t>(root)));
  for (int k = 0; k < parts; ++k) {
    const auto before = up;
    for (auto rank = from_root.rbegin(); rank != from_root.rend(); ++rank) {
      const auto i = static_cast<std::size_t>(*rank);
      if (*rank == root) {
        for (const int child : children[i])
          schedule.after_arrival(all_summed, up[static_cast<std::size_t>(child)]);
        continue;
      }
      up[i] = schedule.send(*rank, parents[i], layout.occupied(*rank, parents[i], part), adding(i));
      for (const int child : children[i]) schedule.after_arrival(up[i], up[static_cast<std::size_t>(child)]);
      schedule.after_sending(up[i], before[i]);
    }
  }
  for (int k = 0; k < parts; ++k) {
    const auto before = down;
    for (const int rank : from_root) {
      const auto i = static_cast<std::size_t>(rank);
      if (rank == root) continue;
      down[i] = schedule.send(parents[i], rank, layout.occupied(parents[i], rank, part));
      schedule.after_arrival(down[i],
                             parents[i] == root ? all_summed : down[static_cast<std::size_t>(parents[i])]);
      schedule.after_sending(down[i], before[i]);
    }
  }
}

void add_two_trees(MessageSchedule& schedule, const Layout& layout, double bytes) {
  const auto& cluster = layout.cluster;
  const bool over_nodes = layout.nodes > 1;
  const int count = over_nodes ? layout.nodes : layout.workers;
  const int chain = over_nodes ? layout.in_node - 1 : 0;
  const double levels = std::bit_width(static_cast<unsigned>(count - 1)) + chain;
  double rate = over_nodes ? cluster.network_bytes_per_s(layout.nodes) : cluster.node_link.bytes_per_s.low;
  double message = over_nodes ? cluster.network.message_s.low : cluster.node_link.message_s.low;
  if (chain > 0) {
    rate = std::min(rate, cluster.node_link.bytes_per_s.low);
    message = std::max(message, cluster.node_link.message_s.low);
  }
  const int parts = tree_parts(levels, bytes, message, rate);
  for (const int tree : {0, 1}) add_tree(schedule, layout, tree_parents(layout, tree), bytes / 2, parts);
}

/// As comm/algorithms/exchange.cc: block k is scattered in the round in which the sums of block k - 1 are
/// gathered.
void add_exchange(MessageSchedule& schedule, const Layout& layout, double bytes) {
  const int count = layout.workers;
  const bool is_small = bytes <= kExchangeSmallBytes;
  const int blocks = is_small ? 1 : static_cast<int>(std::ceil(bytes / kExchangeBlockBytes));
  const int rounds = is_small ? 1 : blocks + 1;
  const auto block = [&](int k) {
    if (is_small) return bytes * count;  // all of it to everybody
    return k + 1 < blocks ? kExchangeBlockBytes : bytes - kExchangeBlockBytes * (blocks - 1);
  };
  std::vector<int> ready(static_cast<std::size_t>(count), -1);
  for (int k = 0; k < rounds; ++k) {
    const bool scatters = k<blocks, gathers = k> 0;
    std::vector<int> done;
    const double added = scatters ? block(k) / count * (count - 1) : 0;
    for (int rank = 0; rank < count; ++rank)
      done.push_back(schedule.send(rank, rank, 0, added * layout.adding));
    for (int from = 0; from < count; ++from)
      for (int step = 1; step < count; ++step) {
        const int to = (from + step) % count;
        for (const bool is_scatter : {false, true}) {
          if (is_scatter ? !scatters : !gathers) continue;
          const double part = block(is_scatter ? k : k - 1) / count;
          const int message = schedule.send(from, to, layout.occupied(from, to, part));
          schedule.after_arrival(message, ready[static_cast<std::size_t>(from)]);
          schedule.after_sending(done[static_cast<std::size_t>(from)], message);
          schedule.after_arrival(done[static_cast<std::size_t>(to)], message);
        }
      }
    ready = done;
  }
}

/// Adds the messages of one all-reduce with the algorithm of the cluster, which is not automatic. Returns
/// false, and adds none, for what no messages between ranks describe: in the switch, memory that is shared,
/// halving-doubling over nodes whose workers are no power of two.
bool add_all_reduce(MessageSchedule& schedule, const Cluster& cluster, int workers, double bytes) {
  const Layout layout(cluster, workers);
  const bool one_level = layout.nodes == 1 || layout.in_node == 1;
  switch (algorithm_over(cluster.algorithm, layout.nodes, layout.in_node)) {
    case Algorithm::ring:
      add_flat_ring(schedule, layout, bytes);
      return true;
    case Algorithm::halving_doubling:
      if (!one_level && !(std::has_single_bit(static_cast<unsigned>(layout.in_node)) &&
                          std::has_single_bit(static_cast<unsigned>(layout.nodes)) &&
                          workers == layout.nodes * layout.in_node))
        return false;
      add_halving_doubling(schedule, layout, bytes);
      return true;
    case Algorithm::tree:
      add_two_trees(schedule, layout, bytes);
      return true;
    case Algorithm::hierarchical:
      if (workers != layout.nodes * layout.in_node) return false;
      add_hierarchy(schedule, layout, bytes);
      return true;
    case Algorithm::exchange:
      if (layout.in_node > 1) return false;
      add_exchange(schedule, layout, bytes);
      return true;
    case Algorithm::in_switch:
    case Algorithm::shared_memory:
      return false;
    case Algorithm::automatic:
      break;
  }
  base::expects(false, "add_all_reduce: an algorithm");
  return false;
}

}  // namespace

std::optional<double> simulated_all_reduce(const Cluster& cluster, int workers, double bytes) {
  if (workers < 2 || bytes <= 0) return std::nullopt;
  const AllReduceCost closed = all_reduce_cost(cluster, workers, bytes);
  Cluster named = cluster;
  named.algorithm = closed.algorithm;
  MessageSchedule schedule;
  if (!add_all_reduce(schedule, named, workers, bytes)) return std::nullopt;
  return cluster.link_of(workers).base_s.low + finish_seconds(schedule, named, workers) + closed.emulated_s;
}

}  // namespace paceline::analysis
