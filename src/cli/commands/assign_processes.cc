#include "cli/commands/assign_processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/topology.h"

namespace paceline::cli {
namespace {

using train::Placement;

/// [node]: its processes. Nodes in the order of their first processes, so that process 0 is of the first.
std::vector<std::vector<int>> by_node(std::span<const cluster::ProcessInfo> members) {
  std::vector<std::string> hosts;
  std::vector<std::vector<int>> nodes;
  for (std::size_t process = 0; process < members.size(); ++process) {
    const std::string& host = members[process].host;
    const auto node = static_cast<std::size_t>(std::ranges::find(hosts, host) - hosts.begin());
    if (node == hosts.size()) {
      hosts.push_back(host);
      nodes.emplace_back();
    }
    nodes[node].push_back(static_cast<int>(process));
  }
  return nodes;
}

std::vector<int> packed(std::size_t count, const std::vector<std::vector<int>>& nodes) {
  std::vector<int> chosen;
  for (const auto& node : nodes)
    for (const int process : node)
      if (chosen.size() < count) chosen.push_back(process);
  return chosen;
}

/// Takes a process of each node in turn, so that nodes are filled evenly.
std::vector<int> spread_over_nodes(std::size_t count, const std::vector<std::vector<int>>& nodes) {
  std::vector<int> chosen;
  for (std::size_t round = 0; chosen.size() < count; ++round)
    for (const auto& node : nodes)
      if (chosen.size() < count && round < node.size()) chosen.push_back(node[round]);
  return chosen;
}

/// The number of cores of the worker with the fewest, for `workers` in these processes.
int cores_of_processes(int workers, std::span<const int> processes,
                       std::span<const cluster::ProcessInfo> members) {
  if (processes.empty()) return 0;
  const auto info_of = [&](int process) -> const cluster::ProcessInfo& {
    return members[static_cast<std::size_t>(process)];
  };
  const int workers_each = workers / static_cast<int>(processes.size());
  int least = std::numeric_limits<int>::max();
  for (const int process : processes) {
    const cluster::ProcessInfo& info = info_of(process);
    const auto sharing = std::ranges::count_if(processes, [&](int other) {
      return info_of(other).host == info.host && info_of(other).cores == info.cores;
    });
    least = std::min(least, info.usable / (workers_each * static_cast<int>(sharing)));
  }
  return least;
}

}  // namespace

std::vector<int> processes_for(int workers, Placement placement,
                               std::span<const cluster::ProcessInfo> members) {
  const int all = static_cast<int>(members.size());
  if (workers > all && workers % all != 0) return {};
  const auto count = static_cast<std::size_t>(std::min(workers, all));
  const auto nodes = by_node(members);
  auto chosen = placement == Placement::packed ? packed(count, nodes) : spread_over_nodes(count, nodes);
  std::ranges::sort(chosen);  // since ranks follow the order of processes, and sums that of ranks
  return chosen;
}

std::string placement_text(const train::Options& options, std::span<const cluster::ProcessInfo> members) {
  if (processes_for(options.workers, Placement::packed, members) ==
      processes_for(options.workers, Placement::spread, members))
    return "";
  return options.placement == Placement::packed ? "packed" : "spread";
}

std::vector<study::PlannedCell> assign_processes(const std::vector<study::PlannedCell>& cells,
                                                 std::span<const Placement> placements,
                                                 std::span<const cluster::ProcessInfo> members) {
  std::vector<study::PlannedCell> assigned;
  for (const auto& cell : cells) {
    std::vector<std::vector<int>> seen;
    for (const Placement placement : placements) {
      auto placed = cell;
      placed.options.placement = placement;
      const auto processes = processes_for(cell.options.workers, placement, members);
      if (std::ranges::find(seen, processes) != seen.end()) continue;
      seen.push_back(processes);
      if (processes.empty() && placed.skip.empty())
        placed.skip =
            fmt::format("{} workers do not divide by {} processes", cell.options.workers, members.size());
      if (placement == Placement::spread) {
        // If both placements give the same processes, it is one cell with one record.
        if (placement_text(placed.options, members).empty())
          placed.options.placement = Placement::packed;
        else {
          placed.id += "-spread";
          if (!placed.training.empty()) placed.training += "-spread";
        }
      }
      assigned.push_back(std::move(placed));
    }
  }
  return assigned;
}

int cores_each(int workers, std::span<const Placement> placements,
               std::span<const cluster::ProcessInfo> members) {
  int least = std::numeric_limits<int>::max();
  for (const Placement placement : placements)
    least = std::min(least, cores_of_processes(workers, processes_for(workers, placement, members), members));
  return least;
}

int workers_for_convergence(const std::vector<int>& compared, const study::CoresEach& cores_each) {
  int most = 1;
  for (const int workers : compared)
    if (cores_each(workers) > 0) most = std::max(most, workers);
  return most;
}

std::vector<cluster::ProcessInfo> members_of(const cluster::Session* session) {
  if (session != nullptr) return session->members();
  return {{.host = {}, .cores = base::current_affinity(), .usable = base::usable_cores()}};
}

Settings for_processes(const Settings& given) {
  const auto members = members_of(given.session);
  Settings settings = given;
  settings.study.scale.cores_each =
      settings.study.converge.cores_each = [members, placements = given.study.placements](int workers) {
        return cores_each(workers, placements, members);
      };
  if ((given.command == kConverge || given.command == kSearch) && !given.is_given("workers"))
    settings.train.workers = static_cast<int>(members.size());
  return settings;
}

}  // namespace paceline::cli
