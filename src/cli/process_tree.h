#pragma once

/// Processes and those that they have started, as /proc shows them.

#include <sys/types.h>

#include <string>
#include <vector>

namespace paceline::cli {

/// The processes that `process` has started and that have not been collected; nothing where it is gone.
[[nodiscard]] std::vector<pid_t> children_of(pid_t process);
/// Those of them that run this very program.
[[nodiscard]] std::vector<pid_t> workers_of(pid_t launcher);
/// `process`'s children, theirs, and so on; without itself.
[[nodiscard]] std::vector<pid_t> descendants_of(pid_t process);

/// Sends `signal` to each; one that is gone is none.
void send_signal(const std::vector<pid_t>& processes, int signal);

}  // namespace paceline::cli
