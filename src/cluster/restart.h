#pragma once

/// --restarts: when a run of `paceline launch` is lost, restarts it from its last checkpoint.

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cluster/child.h"
#include "train/given/options.h"

namespace paceline::cluster {

/// Whether a restart may succeed after this exit code: yes if a process was lost (5, or the signal that ended
/// it). A wrong option, unreadable data or too little memory would fail again, and Ctrl-C was intended
/// (table: docs/processes.md).
[[nodiscard]] bool is_worth_a_restart(int exit_code);

/// The exit code of `launch` when its line ended with this one: 5 (communication) for a lost process,
/// whatever the signal.
[[nodiscard]] int exit_code_of_launch(int exit_code);

/// The words to add to the first command line for a restart in `out`, depending on its checkpoint. A run that
/// ended before its first checkpoint begins again: its record is moved to lost.json.
[[nodiscard]] std::vector<std::string> restart_words(const std::filesystem::path& out);

/// Whether the training in `out` that began at `started` (UTC, as in records) or later is complete, so that a
/// process was lost only while exiting.
[[nodiscard]] bool is_complete(const std::filesystem::path& out, const std::string& started);

/// The variable in which launch tells a restarted run how the previous one was lost, as far as it knows.
inline constexpr const char* kLost = "PACELINE_LOST";
[[nodiscard]] std::string lost_text(double ended_at_s, const Ended& ended,  ///< UTC, since 1970
                                    const std::string& launcher);
[[nodiscard]] std::optional<train::LostBefore> read_lost(const char* text);

/// "mpirun ended with 137 (signal 9, Killed)"
[[nodiscard]] std::string sentence_of_end(int code, const std::string& launcher);

/// The progress of the run in `out`, from its files: updates of the newest checkpoint, or the number of
/// records.
[[nodiscard]] std::int64_t progress_of(const std::filesystem::path& out);

/// The wait before the `tries`th restart without progress (from 1): 1 s, 2 s, 4 s ... at most a minute.
[[nodiscard]] std::chrono::seconds wait_before_restart(int tries);

/// How a lost run is restarted.
struct RestartRule {
  std::string launcher = "mpirun";  ///< for messages
  int restarts = 0;                 ///< allowed in a row without progress; progress resets the count
  std::chrono::seconds grace{60};
  std::function<std::int64_t()> progress;  ///< grows when a try gets further
  /// The line of the next try; empty: nothing is left to do, and the result is 0.
  std::function<std::vector<std::string>(int attempt, const Ended&)> again;
  std::function<void(std::chrono::milliseconds)> wait;  ///< empty: waits for that time, or until a signal
};

/// Runs `line` and, while it is lost, the lines of `rule`; reports each that a signal ended. A run that was
/// told to stop is never restarted: the result is 128 + the signal, or 0 if it was complete before. Returns
/// the last exit code.
[[nodiscard]] int run_with_restarts(const std::vector<std::string>& line, const StopRequest& stop,
                                    const RestartRule& rule);

}  // namespace paceline::cluster
