#pragma once

/// Runs one rank's training from the first step to the last; run() calls it on a thread for each rank.

#include "comm/communicator.h"
#include "train/given/job.h"
#include "train/record/worker_result.h"

namespace paceline::train {

/// Runs rank `communicator.rank()` of `job`, and returns its figures.
///
/// Errors   Error(data) naming step, learning rate and last good checkpoint when the loss is not finite;
///          Error(comm) when a peer is lost; any error of loader, engine and checkpoints
[[nodiscard]] WorkerResult work(const Job& job, comm::Communicator& communicator);

}  // namespace paceline::train
