#pragma once

/// What another process of this host does.

#include <sys/types.h>

#include <cstdint>
#include <optional>

namespace paceline::base {

/// The letter of /proc/PID/stat: 'R' and 'S' of one that lives, 'T' of one that a signal has stopped ('t': a
/// debugger), 'Z' of one that has ended and was not collected; '\0': there is none, or it may not be seen.
///
/// Cost     three system calls. Threads  any; may be called between fork() and exec()
[[nodiscard]] char state_of_process(pid_t process);

/// Nanoseconds for which the first thread of a process has run; nothing where the system does not tell.
///
/// Cost     three system calls
[[nodiscard]] std::optional<std::int64_t> ran_for_ns(pid_t process);

}  // namespace paceline::base
