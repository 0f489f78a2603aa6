#pragma once

/// This process's workers: a thread each, started together and joined together.

#include <memory>
#include <vector>

#include "comm/communicator.h"
#include "train/job.h"
#include "train/worker_result.h"

namespace paceline::train {

/// Starts a thread for each of `communicators` and waits for all of them. A worker that fails tells the
/// others.
///
/// Errors   what went wrong first; the Error(comm) of the others are its consequences
[[nodiscard]] std::vector<WorkerResult> run_workers(
    const Job& job, std::vector<std::unique_ptr<comm::Communicator>>& communicators);

}  // namespace paceline::train
