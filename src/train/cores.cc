#include "train/cores.h"

#include "base/topology.h"

namespace paceline::train {

namespace {

/// The cores near the GPU of each worker of all processes that share cores with this one, in their order;
/// empty if the run uses no GPU.
std::vector<std::vector<int>> wishes(int workers_each, const Backend& backend) {
  const ProcessPlacement& place = backend.place;
  if (!backend.cores_near) return {};
  const int workers = workers_each * place.core_sharers;
  // Worker i of the processes that share cores has GPU i that they see; otherwise the assignment is unknown.
  if (place.core_sharers == place.device_sharers && place.core_share_index == place.device_share_index)
    return backend.cores_near(workers);
  if (place.core_sharers > 1) return {};
  const int first = place.device_share_index * workers_each;
  auto all = backend.cores_near(first + workers_each);
  if (all.empty()) return {};
  return {all.begin() + first, all.end()};
}

}  // namespace

std::vector<std::vector<int>> choose_cores(const Resolved& resolved, const Backend& backend,
                                           std::vector<std::string>& notes) {
  const ProcessPlacement& place = backend.place;
  const auto plan = base::plan_cores(resolved.local_workers * place.core_sharers, resolved.threads,
                                     wishes(resolved.local_workers, backend));
  notes.push_back(plan.note);
  const auto first = plan.cores.begin() + place.core_share_index * resolved.local_workers;
  return {first, first + resolved.local_workers};
}

void bind_worker(const Job& job, int local_rank, measure::RankRecord& rank, std::vector<std::string>& notes) {
  if (job.cores.empty()) return;
  rank.cores = job.cores[static_cast<std::size_t>(local_rank)];
  const auto refused = base::bind_current_thread(rank.cores);
  if (!refused) return;
  rank.cores.clear();
  notes.push_back("workers are not pinned to cores: " + *refused);
}

}  // namespace paceline::train
