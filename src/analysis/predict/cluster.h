#pragma once

/// Describes a cluster that a prediction is about: its nodes, links, workers, storage and price. Read from a
/// file (`paceline-cluster-1`, docs/prediction.md) or taken from the presets.
///
/// A figure that is not known exactly is a range. draw() takes one value out of each, so that many draws show
/// what the ranges make of a prediction.

#include <array>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"

namespace paceline::analysis {

/// A value from `low` to `high`; equal where it is known or was drawn.
struct Range {
  double low = 0, high = 0;
  [[nodiscard]] static Range of(double value) { return {value, value}; }
  [[nodiscard]] double middle() const { return low / 2 + high / 2; }
  [[nodiscard]] bool is_fixed() const { return low == high; }
  [[nodiscard]] Range scaled(double by) const { return {low * by, high * by}; }
  bool operator==(const Range&) const = default;
};

/// A way to sum over ranks; the formulas are in collective_cost.h.
enum class Algorithm {
  automatic,  ///< the fastest of what NCCL has: ring; between nodes tree; in the switch, if it can add
  ring,
  halving_doubling,
  tree,           ///< double binary tree
  hierarchical,   ///< reduce-scatter in each node, all-reduce between nodes, all-gather in each node
  in_switch,      ///< the switch adds
  exchange,       ///< this program's own between hosts
  shared_memory,  ///< this program's own inside a host
};
inline constexpr int kAlgorithms = 8;
/// As cluster files write it: "auto", "halving-doubling".
[[nodiscard]] std::string_view name(Algorithm algorithm);
[[nodiscard]] std::optional<Algorithm> find_algorithm(std::string_view name);
[[nodiscard]] std::vector<std::string> algorithm_names();

/// One all-reduce that was timed.
struct TimedAllReduce {
  int ranks = 0;
  double bytes = 0;
  double seconds = 0;
};

class LinkTable;  // link_table.h

/// What one rank sends and receives over, at one level: inside a node, or from a node to the others.
struct Link {
  Range bytes_per_s;  ///< one way, what messages reach of it: the specification times its share. 0: no link
  Range latency_s;    ///< of one hop
  Range base_s;       ///< once for each collective: launching and agreeing
  Range message_s;    ///< for which each message occupies its sender and its receiver, besides its bytes
  /// Of all ranks of a node together, where they share it, as memory; 0: not limited.
  Range total_bytes_per_s;
  bool in_switch = false;  ///< the switch can add
  /// Timed all-reduces over this level; the formulas then give only the ratio to what was not timed.
  std::shared_ptr<const LinkTable> measured;
  double measured_spread = 0;  ///< LinkTable::spread()
  /// What draw() made of it; applies to numbers of ranks that were not timed.
  double other_ranks_factor = 1;

  [[nodiscard]] bool exists() const { return bytes_per_s.high > 0; }
};

struct Network : Link {  ///< bytes_per_s is of one network card
  int nics_per_node = 1;
  int nodes_per_switch = 0;               ///< 0: all on one
  Range oversubscription = Range::of(1);  ///< of what leaves a switch; at least 1
};

/// A link that `--emulate-link` adds to the real one (comm/emulate.h).
struct AddedLink {
  Range latency_s, bytes_per_s;  ///< bytes_per_s 0: no limit
  bool between_nodes = false;    ///< as `between=hosts`: inside a node nothing is added
  int per_host = 0;              ///< workers of an emulated host, between which is the link inside; 0: none
  Range inside_latency_s, inside_bytes_per_s;
  int per_switch = 0;  ///< beyond so many ends the bandwidth is divided by `oversubscription`; 0: never
  double oversubscription = 1;  ///< at least 1
};

struct Storage {
  Range shared_bytes_per_s;  ///< of all nodes together; 0: not limited
  Range node_bytes_per_s;    ///< of each node's own disk; 0: not limited
  Range opens_per_s;         ///< of all nodes together; 0: not limited
};

struct Cost {
  double node_hour = 0;
  std::string currency;
};

struct Cluster {
  std::string name;    ///< of the preset, or the file's name
  std::string source;  ///< where its figures come from
  std::string preset;  ///< that it is, or that its file began from; "": none
  int nodes = 1, workers_per_node = 1;
  double memory_bytes = 0;            ///< of one worker; 0: not known
  Range worker_speed = Range::of(1);  ///< of own work, against the measured worker
  Range worker_spread;                ///< standard deviation between workers, as a part of own work
  Range adds_bytes_per_s;             ///< how fast a rank adds; 0: adding costs nothing
  Link node_link;
  Network network;
  std::optional<AddedLink> emulated;
  std::optional<Storage> storage;
  std::optional<Cost> cost;
  Algorithm algorithm = Algorithm::automatic;

  [[nodiscard]] std::int64_t slots() const { return std::int64_t{nodes} * workers_per_node; }
  [[nodiscard]] int nodes_of(int workers) const {  ///< nodes that are filled one after the other
    return (workers + workers_per_node - 1) / workers_per_node;
  }
  [[nodiscard]] std::array<Link*, 2> links() { return {&node_link, &network}; }
  [[nodiscard]] const Link& link_of(int workers) const {  ///< over which so many reduce
    return nodes_of(workers) > 1 ? network : node_link;
  }
  /// What one of `of_nodes` nodes sends to the others, one way; 0: not limited. All of it counts as leaving
  /// the node's switch if one switch does not have all of them.
  [[nodiscard]] double network_bytes_per_s(int of_nodes) const {
    const bool leaves = network.nodes_per_switch > 0 && of_nodes > network.nodes_per_switch;
    return network.bytes_per_s.low * network.nics_per_node / (leaves ? network.oversubscription.low : 1);
  }
};

/// The presets' names, in the order of the page.
[[nodiscard]] std::vector<std::string> preset_names();
[[nodiscard]] std::optional<Cluster> find_preset(std::string_view name);

inline constexpr std::string_view kClusterSchema = "paceline-cluster-1";

struct MeasuredFiles {
  std::optional<std::filesystem::path> node_link, network;
};

/// A preset, or else a file. `[node.link] measured` and `[network] measured` name files that only the caller
/// can read: `measured_files` receives their paths, for attach().
///
/// Errors   Error(usage) with file and line: unknown keys, Gbit/s in place of GB/s, both ways of a link in
///          place of one, reversed ranges, ...
[[nodiscard]] Cluster read_cluster(const std::string& file_or_preset, MeasuredFiles* measured = nullptr);
/// The same for the text of a file; `where` is named in errors.
[[nodiscard]] Cluster parse_cluster(std::string_view text, const std::string& where,
                                    MeasuredFiles* measured = nullptr);

/// Gives `cluster` all-reduces that were timed: those of at most workers_per_node ranks speak of the node's
/// link, the others of the network. A link without a bandwidth of its own gets it from them.
void attach(Cluster& cluster, std::span<const TimedAllReduce> timed);

/// A cluster in which every range is one value, drawn uniformly.
[[nodiscard]] Cluster draw(const Cluster& cluster, base::Rng& random);
/// The same with the middle of every range.
[[nodiscard]] Cluster middle(const Cluster& cluster);

/// Errors   Error(usage) where the cluster has no place for so many
void require_slots(const Cluster& cluster, std::int64_t workers);

}  // namespace paceline::analysis
