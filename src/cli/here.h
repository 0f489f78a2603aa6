#pragma once

/// `paceline launch --by here`: the processes of one host, started and watched without mpirun.
///
/// launch starts itself a second time, and that one starts the processes, as mpirun would: so all that launch
/// does about a launcher (signals, restarts, orphans) holds for it too.

#include <string>
#include <vector>

namespace paceline::cli {

/// Whether this process is the one that launch has started to start the others: the value of kJobOfLaunch
/// begins with the id of its parent.
[[nodiscard]] bool is_starter_here();

/// Runs `line` in `processes` processes of this host, which find one another through RANK, WORLD_SIZE,
/// LOCAL_RANK, MASTER_ADDR, MASTER_PORT and PACELINE_JOB; standard input is the first one's. Waits until all
/// have ended. When one ends by a signal, or with a code of an error, the others are left ten seconds to say
/// it and to write the record, then asked to end (SIGTERM), and five seconds later ended by force; one that
/// was asked to stop (129, 130, 143) is waited for by launch's own --grace.
///
/// Returns  the code of the first process that ended with an error, 128 + the signal that ended it; else of
///          the first that was stopped; else 0
/// Errors   Error(comm): a process cannot be started, or there is no free port
/// Threads  one, in a process that has no other
[[nodiscard]] int run_here(const std::vector<std::string>& line, int processes);

}  // namespace paceline::cli
