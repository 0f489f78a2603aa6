#include "train/run_workers.h"

#include "train/run_ranks.h"
#include "train/worker.h"

namespace paceline::train {

std::vector<WorkerResult> run_workers(const Job& job,
                                      std::vector<std::unique_ptr<comm::Communicator>>& communicators) {
  std::vector<WorkerResult> results(communicators.size());
  run_ranks(communicators, [&](std::size_t rank) { results[rank] = work(job, *communicators[rank]); });
  return results;
}

}  // namespace paceline::train
