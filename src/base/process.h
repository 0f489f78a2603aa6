#pragma once

/// What the system says of processes: the state of another process of this host, and the limits that the
/// control group sets for this one.

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <optional>

namespace paceline::base {

// Reads how much of the machine the control group (a container, a batch job, a systemd slice) grants this
// process.
//
// /proc shows the whole machine. Limits are in the cgroup file system, in one of two layouts, at any level
// above the process. A program that ignores them plans for 256 GB and is killed at 8.

/// A field is empty where there is no limit.
struct CgroupLimits {
  std::optional<std::int64_t> memory_bytes;  ///< the smallest limit of all levels
  std::optional<std::int64_t>
      memory_available_bytes;           ///< the smallest limit less what is used and not reclaimable
  std::optional<double> cpus;           ///< quota / period: 1.5 is one and a half cores' time
  std::optional<std::int64_t> threads;  ///< processes and threads together: the smallest limit of all levels
};

/// Reads cgroup v2, v1 or a mixture of both below `root`; tests pass a made-up file system.
[[nodiscard]] CgroupLimits cgroup_limits(const std::filesystem::path& root = "/");

/// How many processes of this process's cgroup the kernel has ended because memory ran out; of the whole
/// system if the cgroup does not count them. Nothing if nobody does.
[[nodiscard]] std::optional<std::int64_t> out_of_memory_kills(const std::filesystem::path& root = "/");

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
