#pragma once

/// Runs a process's ranks, a thread for each.

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "base/start_thread.h"
#include "comm/communicator.h"

namespace paceline::train {

/// Calls work(i) for each of `communicators` in a thread of its own; returns when all have ended. If one
/// throws, or the system refuses a thread, the others are aborted, since they wait for it. A
/// base::AgreedError, which all ranks throw, leaves the communicators intact.
///
/// Errors   the original error: a failed rank makes the others throw Error(comm), and its own error is
///          preferred to one that the ranks agreed on. Error(device) for a refused thread
void run_ranks(const std::vector<std::unique_ptr<comm::Communicator>>& communicators,
               const std::function<void(std::size_t)>& work,
               const base::StartThread& start = base::start_thread);

}  // namespace paceline::train
