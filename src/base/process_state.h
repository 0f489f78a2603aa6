#pragma once

/// Reads the state of other processes of this host.

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace paceline::base {

/// The state letter of /proc/PID/stat: 'R' or 'S' alive, 'T' stopped by a signal, 't' by a debugger, 'Z'
/// ended but not collected; '\0' if there is no such process, or it may not be seen.
///
/// Cost     three system calls
/// Threads  any; may be called between fork() and exec()
[[nodiscard]] char state_of_process(pid_t process);

/// Nanoseconds of processor time of the first thread of a process; nothing if the system does not tell.
///
/// Cost     three system calls
[[nodiscard]] std::optional<std::int64_t> ran_for_ns(pid_t process);

}  // namespace paceline::base
