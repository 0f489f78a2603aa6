#pragma once

/// Decides which processes run a cell of N workers. With at least N processes: N of them, one worker each,
/// either packed (one node is filled before the next) or spread evenly over all nodes. With fewer: all
/// processes, with several workers each, if N is a multiple of their number. Process 0, which leads, takes
/// part in every cell. Pure functions, except for_processes().

#include <span>
#include <string>
#include <vector>

#include "cli/options/options.h"
#include "cluster/session.h"
#include "study/study.h"

namespace paceline::cli {

/// The numbers of the processes that run a cell of `workers`, ascending; empty if it cannot be run.
[[nodiscard]] std::vector<int> processes_for(int workers, train::Placement placement,
                                             std::span<const cluster::ProcessInfo> members);
/// "packed" or "spread" if the two differ for a cell of `options`; else "".
[[nodiscard]] std::string placement_text(const train::Options& options,
                                         std::span<const cluster::ProcessInfo> members);

/// Each cell once for every placement that gives it different processes; the id of the spread one ends in
/// "-spread". Cells that cannot be distributed are marked to be skipped, with the reason.
[[nodiscard]] std::vector<study::PlannedCell> assign_processes(const std::vector<study::PlannedCell>& cells,
                                                               std::span<const train::Placement> placements,
                                                               std::span<const cluster::ProcessInfo> members);

/// The number of cores that each worker of a cell of `workers` has for itself, in the least favourable
/// placement and for the worker with the fewest; 0: there are more workers than cores, or the cell cannot be
/// distributed.
[[nodiscard]] int cores_each(int workers, std::span<const train::Placement> placements,
                             std::span<const cluster::ProcessInfo> members);
/// For convergence, which is about accuracy: the largest of the numbers `compared` for which workers have
/// cores of their own, so that it is as fast as possible; 1 if there is none.
[[nodiscard]] int workers_for_convergence(const std::vector<int>& compared,
                                          const study::CoresEach& cores_each);

/// The processes of this run; just this one if it runs alone.
[[nodiscard]] std::vector<cluster::ProcessInfo> members_of(const cluster::Session* session);

/// `given`, completed with what its cells must know of the processes that run them. Unless the user said how
/// many workers share converge's large batch, it is one per process.
[[nodiscard]] Settings for_processes(const Settings& given);

}  // namespace paceline::cli
