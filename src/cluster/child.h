#pragma once

/// Runs a launcher (mpirun) as a child process: starts it, stops it when this process is told to stop, and
/// waits for it and for everything that it has started.

#include <sys/types.h>

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "cluster/interrupt.h"
#include "cluster/passed_output.h"
#include "train/given/options.h"

namespace paceline::cluster {

/// The file that a shell would start as `name`, or "".
[[nodiscard]] std::string in_path(const std::string& name);

/// Exit code of this program after a bug (EX_SOFTWARE); 2 to 5 are base::ErrorKind.
inline constexpr int kBugExitCode = 70;

/// The exit code of a child by its wait status; 128 + the signal that ended it.
[[nodiscard]] int code_of(int status);

/// A child process, or why there is none.
struct Started {
  pid_t process = -1;
  int error = 0;  ///< errno of what failed; if the program could not be executed, the child has ended
};
/// Starts the program of `line` in a child process, where `prepare` runs first: only what is allowed between
/// fork() and exec().
[[nodiscard]] Started start_program(const std::vector<std::string>& line,
                                    const std::function<void()>& prepare);

/// How a line of shell ended.
struct ShellOutput {
  std::string text;  ///< standard output without trailing line ends
  int code = 0;
};
/// Errors   Error(device): no process could be started
[[nodiscard]] ShellOutput run_in_shell(const std::string& line);

/// How a command line ended.
struct Ended {
  int code = 0;
  /// From the last check that saw a worker of it on this host to the first that saw none; none if no check
  /// saw a worker.
  std::optional<double> detection_s;
  double known_ago_s = 0;      ///< since that check
  bool out_of_memory = false;  ///< meanwhile the kernel ended a process for lack of memory
};

/// Runs `line` until it and everything that it has started on this host have ended.
///
/// It runs in a process group of its own, so that Ctrl-C in a terminal reaches only this process. When `stop`
/// is requested, the workers on this host get the signal directly: they end after their step and keep their
/// checkpoint, while mpirun continues to pass on their output. (mpirun itself, told to end, would be silent
/// for seconds and then kill them.) If there is no worker here, mpirun gets the signal. Whatever has not
/// ended after `grace`, or at a second signal, is killed.
///
/// `output`, if given, passes on what it prints. The result is its exit code, or 128 + the signal that ended
/// it; but 5 (communication) if it was running and gave up with a code of its own, as mpirun does when it has
/// lost a host. A launcher without workers on this host is waited for as long as it takes. Processes that it
/// leaves behind (if it is killed) are asked to end, and killed after `grace`, so that a restart finds none
/// of them.
///
/// Errors   Error(comm) that says what to install when the first word cannot be started
/// Threads  one at a time; it collects every child of this process
[[nodiscard]] Ended run_line(const std::vector<std::string>& line, const StopRequest& stop,
                             std::chrono::seconds grace, const PassedOutput* output = nullptr);

// --restarts: when a run of `paceline launch` is lost, restarts it from its last checkpoint.

/// Whether a restart may succeed after this exit code: yes if a process was lost (5, or the signal that ended
/// it). A wrong option, unreadable data or too little memory would fail again, and Ctrl-C was intended
/// (table: docs/lost.md).
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

/// How a lost run is restarted.
struct RestartRule {
  std::string launcher = "mpirun";  ///< for messages
  int restarts = 0;                 ///< allowed in a row without progress; progress resets the count
  std::chrono::seconds grace{60};
  std::function<std::int64_t()> progress;  ///< grows when a try gets further
  /// The line of the next try; empty: nothing is left to do, and the result is 0.
  std::function<std::vector<std::string>(int attempt, const Ended&)> again;
  std::function<void(std::chrono::milliseconds)> wait;  ///< empty: waits for that time, or until a signal
  const PassedOutput* output = nullptr;                 ///< of all lines; null: they print themselves
};

/// Runs `line` and, while it is lost, the lines of `rule`; reports each that a signal ended. A run that was
/// told to stop is never restarted: the result is 128 + the signal, or 0 if it was complete before. Returns
/// the last exit code.
[[nodiscard]] int run_with_restarts(const std::vector<std::string>& line, const StopRequest& stop,
                                    const RestartRule& rule);

}  // namespace paceline::cluster
