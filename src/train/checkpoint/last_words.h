#pragma once

/// Writes what a lost run leaves in its output directory for the run that resumes it.

#include <filesystem>

#include "measure/record.h"

namespace paceline::train {

/// The reason in the record of a run that is still training; it stays there if the run is killed.
inline constexpr const char* kNoLastWord = "the run ended after this epoch without reporting an error";

/// If process 0 is lost, nobody writes its record: each other process that sees the output directory writes
/// its own record under this name. Their contents agree.
inline constexpr const char* kLastWords = "lost-rank-0.json";
/// Errors   Error(data) when it cannot be written
void leave_last_words(const std::filesystem::path& out, const measure::Record& record);
/// Removes them once they were read or their run is over, so that no later run takes them for its own.
void forget_last_words(const std::filesystem::path& out);

/// The record of a run that was lost before its first checkpoint; renamed so that the next run can write its
/// own.
inline constexpr const char* kLostRecord = "lost.json";

}  // namespace paceline::train
