#pragma once

/// Ends this process where it is stopped (SIGSTOP) and nobody lets it go on.
///
/// What a process can do for itself ends when it is stopped: no thread of it runs. In the middle of a run the
/// others notice and give it up; but a launcher waits for a process that is stopped on its way out for as
/// long as it takes, and one that no launcher started stays behind for ever. So a child of this process looks
/// once a second whether it is stopped. One that is stopped together with its child (a suspended job, a
/// terminal's Ctrl-Z) may rest as long as it likes, and so may one that a debugger holds.

#include <chrono>

namespace paceline::cli {

/// From now until this process ends: a child that ends it once it has been stopped for `longest`, with a
/// sentence that calls it `process`. Without a process to spare there is none.
///
/// Cost     the child: a page or two of memory of its own, one look a second
/// Threads  the main thread, before there are others
void guard_against_being_stopped(int process, std::chrono::seconds longest);

}  // namespace paceline::cli
