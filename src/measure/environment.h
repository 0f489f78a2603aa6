#pragma once

/// The circumstances of a measurement: machine, build, libraries. They stand in every record.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace paceline::measure {

struct Environment {
  std::string host;
  std::string cpu;                ///< model name
  int cores = 0;                  ///< that this process may use (affinity and cgroup, not what is built in)
  std::int64_t memory_bytes = 0;  ///< of the machine or its cgroup, whichever is smaller
  std::vector<std::string> instructions;  ///< of interest: avx2, avx512f, avx512_bf16, amx_bf16
  std::string os;                         ///< "Debian GNU/Linux 12, Linux 6.1.0"
  std::string compiler;
  std::string build;                   ///< "Release"; anything else is marked in every table
  std::string version;                 ///< paceline version and commit
  std::vector<std::string> libraries;  ///< "onednn 2.6.3"
  double load_before = 0;              ///< 1-minute load average when the run began
  /// What the GPUs of the host said before the run, a sentence each; of runs that use them.
  std::optional<std::vector<std::string>> gpus = {};
};

/// `libraries`: names and versions of what computes, from a caller that knows it (this folder links none of
/// it).
[[nodiscard]] Environment environment(std::vector<std::string> libraries = {});

/// "2026-01-31T12:00:00Z": now, in ISO 8601, as records say when they were made.
[[nodiscard]] std::string utc_now();
/// Seconds since 1970, UTC.
[[nodiscard]] double unix_now();

/// Of the machine or its cgroup, whichever is smaller.
[[nodiscard]] std::int64_t machine_memory_bytes();

/// Bytes of memory that this process could still take (MemAvailable, bounded by the cgroup).
[[nodiscard]] std::int64_t available_memory_bytes();
/// Bytes that `ulimit -v` still leaves this process; the largest number where it sets no limit.
[[nodiscard]] std::int64_t address_space_left();
/// Resident memory of this process now, and the most since the last reset_peak_memory().
[[nodiscard]] std::int64_t resident_bytes();
[[nodiscard]] std::int64_t peak_resident_bytes();
/// Gives the heap memory that nobody holds back to the system, so that it counts as resident no more.
void release_free_memory();
/// Starts the peak anew (/proc/self/clear_refs); false where the system does not allow it.
bool reset_peak_memory();

}  // namespace paceline::measure
