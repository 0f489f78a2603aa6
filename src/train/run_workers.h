#pragma once

/// Starts and joins this process's workers, a thread each.

#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "train/given/job.h"
#include "train/record/worker_result.h"

namespace paceline::train {

/// Runs a thread for each of `communicators` and waits for all of them. A worker that fails tells the others.
///
/// Errors   the first failure; the Error(comm) of other workers are its consequences
[[nodiscard]] std::vector<WorkerResult> run_workers(
    const Job& job, std::vector<std::unique_ptr<comm::Communicator>>& communicators);

}  // namespace paceline::train
