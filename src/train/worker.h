#pragma once

/// One rank's training from the first step to the last: what run() starts on a thread of its own.

#include "comm/communicator.h"
#include "train/job.h"
#include "train/worker_result.h"

namespace paceline::train {

/// Runs rank `communicator.rank()` of `job`.
/// Errors   Error(data) naming step, learning rate and last good checkpoint when the loss is no longer
///          finite; Error(comm) when a peer is lost; whatever loader, engine and checkpoints throw
[[nodiscard]] WorkerResult work(const Job& job, comm::Communicator& communicator);

}  // namespace paceline::train
