#pragma once

/// Kills this process if it stays stopped (SIGSTOP).
///
/// A stopped process can do nothing itself, since none of its threads runs. During a run the other processes
/// notice it and give it up. But a launcher waits without limit for a process that is stopped while it exits,
/// and without a launcher such a process stays forever. So a child of this process checks once a second
/// whether it is stopped. A process that is stopped together with its child (a suspended job, Ctrl-Z in a
/// terminal) or held by a debugger is left alone.

#include <chrono>

namespace paceline::cli {

/// Starts a child that kills this process once it has been stopped for `longest`, with a message that calls
/// it `process`. Does nothing if the system has no process to spare.
///
/// Cost     the child: a page or two of memory, one check a second
/// Threads  the main thread, before others are started
void guard_against_being_stopped(int process, std::chrono::seconds longest);

}  // namespace paceline::cli
