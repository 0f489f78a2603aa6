#pragma once

/// --restarts: when a run that `paceline launch` started is lost, it is started again from its last
/// checkpoint.

#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/child.h"
#include "train/options.h"

namespace paceline::cli {

/// Whether a run that ended so may end better a second time: a lost process (5, or the signal that ended it).
/// A wrong option, unreadable data or too little memory would be so again, and Ctrl-C was meant.
[[nodiscard]] bool is_worth_a_restart(int exit_code);

/// What `launch` ends with when its line ended so: a process that was lost is 5 (communication), by whichever
/// signal it went.
[[nodiscard]] int exit_code_of_launch(int exit_code);

/// How to begin again in `out`: the words that follow those of the first start, or why not.
/// A run that ended before its first checkpoint begins anew: its record is moved out of the way, to
/// lost.json.
[[nodiscard]] std::vector<std::string> restart_words(const std::filesystem::path& out);

/// Whether the training in `out` that began at `started` (UTC, as records have it) or later is complete: one
/// of its processes was lost on its way out.
[[nodiscard]] bool is_complete(const std::filesystem::path& out, const std::string& started);

/// The variable with which launch tells a restarted run how the one before was lost, as far as it has seen
/// it; nothing where it is not set.
inline constexpr const char* kLost = "PACELINE_LOST";
[[nodiscard]] std::string lost_text(double ended_at_s, const Ended& ended);  ///< UTC, since 1970
[[nodiscard]] std::optional<train::LostBefore> read_lost(const char* text);

/// "mpirun ended with 137 (signal 9, Killed)"
[[nodiscard]] std::string sentence_of_end(int code);

/// Runs `line` and, while it is lost, at most `restarts` times more the line that `again` gives; an empty
/// one: nothing is left to do, and that is 0. Says of each that a signal ended which one. Returns the last
/// exit code.
[[nodiscard]] int run_with_restarts(
    const std::vector<std::string>& line, int restarts,
    const std::function<std::vector<std::string>(int attempt, const Ended&)>& again);

}  // namespace paceline::cli
