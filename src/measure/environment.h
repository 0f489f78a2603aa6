#pragma once

/// Describes the environment of a measurement for the record: machine, build, libraries; and reads how much
/// memory there is.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace paceline::measure {

// The version of this program. It is compiled into version.cc only, so that a commit rebuilds one file.

[[nodiscard]] std::string version();     ///< "0.1.0 (5893440)", "0.1.0 (5893440, modified)"
[[nodiscard]] std::string compiler();    ///< "GCC 12.2.0"
[[nodiscard]] std::string build_type();  ///< "Release"; with a sanitizer "Release, thread sanitizer"

struct Environment {
  std::string host;
  std::string cpu;                        ///< model name
  int cores = 0;                          ///< that this process may use (affinity and cgroup)
  std::int64_t memory_bytes = 0;          ///< of the machine or its cgroup, whichever is smaller
  std::vector<std::string> instructions;  ///< the relevant ones: avx2, avx512f, avx512_bf16, amx_bf16
  std::string os;                         ///< "Debian GNU/Linux 12, Linux 6.1.0"
  std::string compiler;
  std::string build;                   ///< "Release"; tables mark any other
  std::string version;                 ///< paceline version and commit
  std::vector<std::string> libraries;  ///< "onednn 2.6.3"
  double load_before = 0;              ///< 1-minute load average when the run began
  /// State of the host's GPUs before the run, a sentence each; only of runs that use them.
  std::optional<std::vector<std::string>> gpus = {};
};

/// `libraries`: names and versions of the computing libraries, from a caller that knows them (this folder
/// links none of them).
[[nodiscard]] Environment environment(std::vector<std::string> libraries = {});

/// The current time in ISO 8601, "2026-01-31T12:00:00Z".
[[nodiscard]] std::string utc_now();
/// Seconds since 1970, UTC.
[[nodiscard]] double unix_now();

/// Memory of the machine or its cgroup, whichever is smaller.
[[nodiscard]] std::int64_t machine_memory_bytes();

/// Bytes that this process could still allocate (MemAvailable, bounded by the cgroup).
[[nodiscard]] std::int64_t available_memory_bytes();
/// Bytes that `ulimit -v` leaves this process; the largest number if there is no limit.
[[nodiscard]] std::int64_t address_space_left();
/// Resident memory of this process now, and its maximum since the last reset_peak_memory().
[[nodiscard]] std::int64_t resident_bytes();
[[nodiscard]] std::int64_t peak_resident_bytes();
/// Returns unused heap memory to the system, so that it no longer counts as resident.
void release_free_memory();
/// Resets the peak (/proc/self/clear_refs); false if the system does not allow it.
bool reset_peak_memory();

}  // namespace paceline::measure
