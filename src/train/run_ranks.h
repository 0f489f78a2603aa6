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
/// that throws, or that the system refuses a thread, aborts the others: they wait for it.
///
/// Errors   the one that began it: a rank that fails drags the others into Error(comm). Error(device) for a
///          refused thread
void run_ranks(const std::vector<std::unique_ptr<comm::Communicator>>& communicators,
               const std::function<void(std::size_t)>& work,
               const base::StartThread& start = base::start_thread);

}  // namespace paceline::train
