#pragma once

/// A launcher (mpirun) as a child of this process: started, given our signals, and waited for.

#include <chrono>
#include <optional>
#include <string>
#include <vector>

namespace paceline::cli {

/// What this program ends with after a fault of its own (EX_SOFTWARE); 2 to 5 are base::ErrorKind.
inline constexpr int kBugExitCode = 70;

/// How long a launcher may outlive the last of its processes on this host that run this program. mpirun waits
/// for its daemons: where a host has lost its power or its link, for a quarter of an hour.
inline constexpr std::chrono::seconds kWithoutWorkers{15};
/// How long it is left to go by itself once it has been asked to.
inline constexpr std::chrono::seconds kToEnd{5};

/// How a line ended.
struct Ended {
  int code = 0;
  /// From the last look that saw a worker of it on this host to the first that saw none; none: no look saw
  /// one.
  std::optional<double> detection_s;
  double known_ago_s = 0;  ///< since that look
};

/// Runs `line` until it ends, passing SIGTERM and SIGHUP on to it; Ctrl-C reaches it from the terminal.
/// Its code is its exit code, 128 + the signal that ended it; 5 (communication) where it was running and gave
/// up with a code of its own, as mpirun does when it has lost a host. A launcher without processes on this
/// host is waited for as long as it takes.
///
/// Errors   Error(comm) that says what to install when the first word cannot be started
[[nodiscard]] Ended run_line(const std::vector<std::string>& line);

}  // namespace paceline::cli
