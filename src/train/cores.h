#pragma once

/// Assigns cores to a process's workers and binds them.

#include <string>
#include <vector>

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

}  // namespace paceline::train
