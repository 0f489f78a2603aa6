#include "train/cores.h"

#include "base/topology.h"

namespace paceline::train {

std::vector<std::vector<int>> choose_cores(const Resolved& resolved, const Backend& backend,
                                           std::vector<std::string>& notes) {
  const ProcessPlacement& place = backend.place;
  const auto near =
      backend.cores_near ? backend.cores_near(resolved.local_workers) : std::vector<std::vector<int>>();
  const auto plan = base::plan_cores(resolved.local_workers * place.core_sharers, resolved.threads, near);
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
