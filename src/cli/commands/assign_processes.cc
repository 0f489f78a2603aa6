#include "cli/commands/assign_processes.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "base/topology.h"

namespace paceline::cli {

int processes_for(int workers, int processes) {
  if (workers <= processes) return workers;
  return workers % processes == 0 ? processes : 0;
}

std::vector<study::PlannedCell> assign_processes(std::vector<study::PlannedCell> cells, int processes) {
  for (auto& cell : cells)
    if (cell.skip.empty() && processes_for(cell.options.workers, processes) == 0)
      cell.skip = fmt::format("{} workers do not divide by {} processes", cell.options.workers, processes);
  return cells;
}

int cores_each(int workers, std::span<const ProcessInfo> members) {
  const int processes = processes_for(workers, static_cast<int>(members.size()));
  if (processes == 0) return 0;
  const auto used = members.first(static_cast<std::size_t>(processes));
  int least = std::numeric_limits<int>::max();
  for (const auto& info : used) {
    const auto sharing = std::count_if(used.begin(), used.end(), [&](const ProcessInfo& other) {
      return other.host == info.host && other.cores == info.cores;
    });
    least = std::min(least, info.usable / (workers / processes * static_cast<int>(sharing)));
  }
  return least;
}

int workers_for_convergence(const std::vector<int>& compared, const study::CoresEach& cores_each) {
  int most = 1;
  for (const int workers : compared)
    if (cores_each(workers) > 0) most = std::max(most, workers);
  return most;
}

Settings for_processes(const Settings& given) {
  std::vector<ProcessInfo> members{
      {.host = {}, .cores = base::current_affinity(), .usable = base::usable_cores()}};
  if (given.session != nullptr) members = given.session->members();
  Settings settings = given;
  settings.study.scale.cores_each =
      settings.study.converge.cores_each = [members](int workers) { return cores_each(workers, members); };
  if ((given.command == kConverge || given.command == kSearch) && !given.is_given("workers"))
    settings.train.workers = static_cast<int>(members.size());
  return settings;
}

}  // namespace paceline::cli
