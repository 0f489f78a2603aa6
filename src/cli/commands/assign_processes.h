#pragma once

/// Which processes run a cell of N workers: the first N of them, one worker each, and all of them with
/// several workers each where N is a multiple of their number. Pure functions, but for for_processes().

#include <span>
#include <vector>

#include "cli/session.h"
#include "cli/settings.h"
#include "study/study.h"

namespace paceline::cli {

/// How many processes of `processes` run a cell of `workers`; 0: there is no way.
[[nodiscard]] int processes_for(int workers, int processes);
/// Cells that cannot be shared out are to be skipped, and say why.
[[nodiscard]] std::vector<study::PlannedCell> assign_processes(std::vector<study::PlannedCell> cells,
                                                               int processes);

/// Cores that every worker of a cell of `workers` has for itself, where they have unequally many the fewest;
/// 0: there are more workers than cores, or no way to share them out.
[[nodiscard]] int cores_each(int workers, std::span<const ProcessInfo> members);
/// Convergence is about accuracy: the most of the numbers `compared` that have cores of their own, so that it
/// is not slow for nothing; 1 when none has.
[[nodiscard]] int workers_for_convergence(const std::vector<int>& compared,
                                          const study::CoresEach& cores_each);

/// `given`, and what its cells need to know of the processes that run them; of this one alone where there are
/// no others. Where nobody said how many workers share converge's large batch, it is one in each process.
[[nodiscard]] Settings for_processes(const Settings& given);

}  // namespace paceline::cli
