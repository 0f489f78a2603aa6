#pragma once

/// Reads the record beside a run's checkpoints as far as it can be used. A resume needs only the checkpoint,
/// so a damaged or forged record must never prevent it. Also writes what a lost run leaves for the next.

#include <filesystem>
#include <optional>
#include <string>

#include "measure/record.h"

namespace paceline::train {

// Writes what a lost run leaves in its output directory for the run that resumes it.

/// The reason in the record of a run that is still training; it stays there if the run is killed.
inline constexpr const char* kNoReportedError = "the run ended after this epoch without reporting an error";

/// If process 0 is lost, nobody writes its record: each other process that sees the output directory writes
/// its own record under this name. Their contents agree.
inline constexpr const char* kLostRank0 = "lost-rank-0.json";
/// Errors   Error(data) when it cannot be written
void write_lost_rank_0(const std::filesystem::path& out, const measure::Record& record);
/// Removes them once they were read or their run is over, so that no later run takes them for its own.
void remove_lost_rank_0(const std::filesystem::path& out);

/// The record of a run that was lost before its first checkpoint; renamed so that the next run can write its
/// own.
inline constexpr const char* kLostRecord = "lost.json";

struct KeptRecord {
  std::optional<measure::Record> record;  ///< none: there is no file, or it cannot be used
  std::string damage;                     ///< why it cannot be used; "" otherwise
};

/// Reads a record and checks what a resume uses: epochs in sequence, counts that are neither negative nor
/// absurd. Never throws for the contents of the file.
[[nodiscard]] KeptRecord read_kept_record(const std::filesystem::path& path);

}  // namespace paceline::train
