#pragma once

/// Runs a process's ranks, a thread for each.

#include <cstddef>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "comm/communicator.h"
#include "measure/record.h"
#include "train/given/backend.h"
#include "train/given/job.h"
#include "train/given/resolve.h"

namespace paceline::train {

/// The cores to which each worker of this process is to be bound, near its GPU if it has one, with a note.
/// Processes that share cores plan for all of them and take their own part.
[[nodiscard]] std::vector<std::vector<int>> choose_cores(const Resolved& resolved, const Backend& backend,
                                                         std::vector<std::string>& notes);

/// Binds the calling thread to the cores of worker `local_rank` and stores them in `rank`: none if workers
/// are not bound, or if the system refuses, which is noted.
void bind_worker(const Job& job, int local_rank, measure::RankRecord& rank, std::vector<std::string>& notes);

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
