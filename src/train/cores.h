#pragma once

/// The cores of a process's workers: which they are, and that each stays on its own.

#include <string>
#include <vector>

#include "measure/record.h"
#include "train/backend.h"
#include "train/job.h"
#include "train/resolve.h"

namespace paceline::train {

/// Which cores each worker of this process is to be bound to, with a note of them: near its GPU where it has
/// one. Processes that share their cores plan for all of them and take their own part.
[[nodiscard]] std::vector<std::vector<int>> choose_cores(const Resolved& resolved, const Backend& backend,
                                                         std::vector<std::string>& notes);

/// Binds the calling thread to the cores of worker `local_rank`, and says in `rank` which they are: none
/// where nobody is bound, or the system refuses, which is noted.
void bind_worker(const Job& job, int local_rank, measure::RankRecord& rank, std::vector<std::string>& notes);

}  // namespace paceline::train
