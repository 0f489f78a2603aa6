#pragma once

/// Finds the children and descendants of a process in /proc, and sends them signals.

#include <sys/types.h>

#include <string>
#include <vector>

namespace paceline::cluster {

/// The children of `process` that have not been collected; empty if it is gone.
[[nodiscard]] std::vector<pid_t> children_of(pid_t process);
/// Those of them that run this program.
[[nodiscard]] std::vector<pid_t> workers_of(pid_t launcher);
/// All descendants of `process`, without itself.
[[nodiscard]] std::vector<pid_t> descendants_of(pid_t process);

/// Sends `signal` to each process; ignores those that are gone.
void send_signal(const std::vector<pid_t>& processes, int signal);

}  // namespace paceline::cluster
