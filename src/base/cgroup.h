#pragma once

/// Reads how much of the machine the control group (a container, a batch job, a systemd slice) grants this
/// process.
///
/// /proc shows the whole machine. Limits are in the cgroup file system, in one of two layouts, at any level
/// above the process. A program that ignores them plans for 256 GB and is killed at 8.

#include <cstdint>
#include <filesystem>
#include <optional>

namespace paceline::base {

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

}  // namespace paceline::base
