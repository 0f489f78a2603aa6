#pragma once

/// What the control group (a container, a batch job, a systemd slice) leaves this process of the machine.
///
/// The kernel shows the whole machine in /proc; a limit lives in the cgroup file system, in one of two
/// layouts, and at any level above the process. Asking the machine alone is how a program plans for 256 GB
/// and is killed at 8.

#include <cstdint>
#include <filesystem>
#include <optional>

namespace paceline::base {

/// Empty where there is no limit.
struct CgroupLimits {
  std::optional<std::int64_t> memory_bytes;  ///< the smallest limit on the way up
  std::optional<std::int64_t>
      memory_available_bytes;           ///< the smallest limit less what is used and not reclaimable
  std::optional<double> cpus;           ///< quota / period: 1.5 is one and a half cores' time
  std::optional<std::int64_t> threads;  ///< processes and threads together: the smallest limit on the way up
};

/// Reads cgroup v2, v1 or the mixture of both below `root` (tests lay out a file system of their own).
[[nodiscard]] CgroupLimits cgroup_limits(const std::filesystem::path& root = "/");

}  // namespace paceline::base
