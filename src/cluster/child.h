#pragma once

/// Runs a launcher (mpirun) as a child process: starts it, stops it when this process is told to stop, and
/// waits for it and for everything that it has started.

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "cluster/stop_request.h"

namespace paceline::cluster {

/// Exit code of this program after a bug (EX_SOFTWARE); 2 to 5 are base::ErrorKind.
inline constexpr int kBugExitCode = 70;

/// How long a launcher may outlive the last of its workers on this host. mpirun waits for its daemons: for a
/// quarter of an hour if a host has lost its power or its link.
inline constexpr std::chrono::seconds kWithoutWorkers{15};
/// How long it may take to end after it was asked to.
inline constexpr std::chrono::seconds kToEnd{5};

/// How a command line ended.
struct Ended {
  int code = 0;
  /// From the last check that saw a worker of it on this host to the first that saw none; none if no check
  /// saw a worker.
  std::optional<double> detection_s;
  double known_ago_s = 0;  ///< since that check
};

/// Runs `line` until it and everything that it has started on this host have ended.
///
/// It runs in a process group of its own, so that Ctrl-C in a terminal reaches only this process. When `stop`
/// is requested, the workers on this host get the signal directly: they end after their step and keep their
/// checkpoint, while mpirun continues to pass on their output. (mpirun itself, told to end, would be silent
/// for seconds and then kill them.) If there is no worker here, mpirun gets the signal. Whatever has not
/// ended after `grace`, or at a second signal, is killed.
///
/// The result is its exit code, or 128 + the signal that ended it; but 5 (communication) if it was running
/// and gave up with a code of its own, as mpirun does when it has lost a host. A launcher without workers on
/// this host is waited for as long as it takes. Processes that it leaves behind (if it is killed) are asked
/// to end, and killed after `grace`, so that a restart finds none of them.
///
/// Errors   Error(comm) that says what to install when the first word cannot be started
/// Threads  one at a time; it collects every child of this process
[[nodiscard]] Ended run_line(const std::vector<std::string>& line, const StopRequest& stop,
                             std::chrono::seconds grace);

}  // namespace paceline::cluster
