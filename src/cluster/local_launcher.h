#pragma once

/// `paceline launch --by here`: starts and watches the processes of one host without mpirun.
///
/// launch starts itself a second time, and that process starts the others, as mpirun would. So everything
/// that launch does for a launcher (signals, restarts, orphans) applies to it too.

#include <string>
#include <vector>

namespace paceline::cluster {

/// Whether launch has started this process to start the others: the value of kJobOfLaunch begins with the id
/// of its parent.
[[nodiscard]] bool is_starter_here();

/// Runs `line` in `processes` processes of this host, which meet through RANK, WORLD_SIZE, LOCAL_RANK,
/// MASTER_ADDR, MASTER_PORT and PACELINE_JOB; the first one gets standard input. Waits until all have ended.
/// When one ends by a signal or with an error code, the others get ten seconds to report it and to write the
/// record; then SIGTERM, and five seconds later they are killed. If it was asked to stop (129, 130, 143),
/// launch's own --grace applies.
///
/// Returns the code of the first process that ended with an error (128 + the signal if a signal ended it),
/// else of the first that was stopped, else 0.
///
/// Errors   Error(comm): a process cannot be started, or there is no free port
/// Threads  one, in a process that has no other
[[nodiscard]] int run_here(const std::vector<std::string>& line, int processes);

}  // namespace paceline::cluster
