#pragma once

/// Which processes run a cell of N workers. Where there are as many processes: N of them, one worker each,
/// either packed (a node is filled before the next) or spread evenly over all nodes. More workers than
/// processes: all processes, with several workers each, where N is a multiple of their number. Process 0,
/// which leads, has a part in every cell. Pure functions, but for for_processes().

#include <span>
#include <string>
#include <vector>

#include "cli/session.h"
#include "cli/settings.h"
#include "study/study.h"

namespace paceline::cli {

/// The numbers of the processes that run a cell of `workers`, ascending; empty: there is no way.
[[nodiscard]] std::vector<int> processes_for(int workers, train::Placement placement,
                                             std::span<const ProcessInfo> members);
/// "packed" or "spread" where that is a choice for a cell of `options`; "" where both are the same processes.
[[nodiscard]] std::string placement_text(const train::Options& options, std::span<const ProcessInfo> members);

/// Each cell once for every placement that gives it other processes; the spread one has "-spread" at the end
/// of its id. Cells that cannot be shared out are to be skipped, and say why.
[[nodiscard]] std::vector<study::PlannedCell> assign_processes(const std::vector<study::PlannedCell>& cells,
                                                               std::span<const train::Placement> placements,
                                                               std::span<const ProcessInfo> members);

/// Cores that every worker of a cell of `workers` has for itself in the placement that leaves it the fewest,
/// where they have unequally many the fewest; 0: there are more workers than cores, or no way to share them
/// out.
[[nodiscard]] int cores_each(int workers, std::span<const train::Placement> placements,
                             std::span<const ProcessInfo> members);
/// Convergence is about accuracy: the most of the numbers `compared` that have cores of their own, so that it
/// is not slow for nothing; 1 when none has.
[[nodiscard]] int workers_for_convergence(const std::vector<int>& compared,
                                          const study::CoresEach& cores_each);

/// The processes of this run; of one that is alone this one.
[[nodiscard]] std::vector<ProcessInfo> members_of(const Session* session);

/// `given`, and what its cells need to know of the processes that run them; of this one alone where there are
/// no others. Where nobody said how many workers share converge's large batch, it is one in each process.
[[nodiscard]] Settings for_processes(const Settings& given);

}  // namespace paceline::cli
