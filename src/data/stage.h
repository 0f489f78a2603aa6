#pragma once

/// Copies the files of a data set to a directory of this host, once for all its processes.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <stop_token>
#include <string>

namespace paceline::data {

struct StageOptions {
  int threads = 1;
  std::stop_token stop = {};
  /// Called once if another process of this host copies into the same directory, before waiting for it.
  std::function<void()> waits = [] {};
  /// Bytes that are copied so far and in all. From any thread, one at a time.
  std::function<void(std::int64_t done, std::int64_t all)> progress = [](std::int64_t, std::int64_t) {};
};

struct StagedData {
  std::string spec;  ///< the given one with the new places, which are absolute
  std::int64_t files = 0, bytes = 0;
  std::int64_t copied = 0, copied_bytes = 0;  ///< of these; the others were there
  std::int64_t removed = 0;                   ///< files of an earlier copy that the set no longer has
};

/// Copies the files that `spec` names into `to`, which is made if it is not there, below a folder of the name
/// of theirs and a hash of their place, so that sets of one name do not meet. A copy whose length and time
/// are the original's is kept: they are set when the copy is complete. Each copy is read again, and its
/// SHA-256 compared with that of the bytes that were written.
///
/// Several processes may call it at once: one copies, the others wait (flock; on a file system without locks
/// all copy, which is as right and slower). One that is killed leaves whole files and files named
/// ".paceline-partial-...", which the next call removes.
///
/// Returns   nothing where it was asked to stop
/// Errors    Error(usage): the data have no files, or `to` cannot stand in a spec; Error(data): too little
///           space, a file that cannot be read or written, that changes while it is copied, or whose copy
///           differs
[[nodiscard]] std::optional<StagedData> stage(const std::string& spec, const std::filesystem::path& to,
                                              const StageOptions& options = {});

}  // namespace paceline::data
