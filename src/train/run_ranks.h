#pragma once

/// A process's ranks at work: a thread for each.

#include <cstddef>
#include <functional>
#include <memory>
#include <vector>

#include "base/start_thread.h"
#include "comm/communicator.h"

namespace paceline::train {

/// Calls work(i) for each of `communicators` in a thread of its own, and returns when all have ended. One
/// that throws, or that the system refuses a thread, aborts the others: they wait for it. Not with a
/// base::AgreedError, which all ranks throw: the communicators stay as they are.
///
/// Errors   the one that began it: a rank that fails drags the others into Error(comm), and its own error
/// counts
///          before one that the ranks agreed on. Error(device) for a refused thread
void run_ranks(const std::vector<std::unique_ptr<comm::Communicator>>& communicators,
               const std::function<void(std::size_t)>& work,
               const base::StartThread& start = base::start_thread);

}  // namespace paceline::train
