#pragma once

/// --restarts: when a run that `paceline launch` started is lost, it is started again from its last
/// checkpoint.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cli/child.h"
#include "train/options.h"

namespace paceline::cli {

/// Whether a run that ended so may end better a second time: a lost process (5, or the signal that ended it).
/// A wrong option, unreadable data or too little memory would be so again, and Ctrl-C was meant
/// (docs/processes.md has the table).
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
[[nodiscard]] std::string lost_text(double ended_at_s, const Ended& ended,  ///< UTC, since 1970
                                    const std::string& launcher);
[[nodiscard]] std::optional<train::LostBefore> read_lost(const char* text);

/// "mpirun ended with 137 (signal 9, Killed)"
[[nodiscard]] std::string sentence_of_end(int code, const std::string& launcher);

/// How far the run in `out` is, as its files tell: updates of the newest checkpoint, or records of cells.
[[nodiscard]] std::int64_t progress_of(const std::filesystem::path& out);

/// The wait before a restart, the `tries`th without progress (from 1): 1 s, 2 s, 4 s ... at most a minute.
[[nodiscard]] std::chrono::seconds wait_before_restart(int tries);

/// How a run that is lost is started again.
struct RestartRule {
  std::string launcher = "mpirun";  ///< for sentences
  int restarts = 0;                 ///< in a row without progress; after progress they count anew
  std::chrono::seconds grace{60};
  std::function<std::int64_t()> progress;  ///< grows where a try came further
  /// The line of the next try; an empty one: nothing is left to do, and that is 0.
  std::function<std::vector<std::string>(int attempt, const Ended&)> again;
  std::function<void(std::chrono::milliseconds)> wait;  ///< empty: as long as it takes, or until a signal
};

/// Runs `line` and, while it is lost, the lines of `rule`; says of each that a signal ended which one. A run
/// that was told to stop is never started again: 128 + the signal, or 0 where it was complete before.
/// Returns the last exit code.
[[nodiscard]] int run_with_restarts(const std::vector<std::string>& line, const StopRequest& stop,
                                    const RestartRule& rule);

}  // namespace paceline::cli
