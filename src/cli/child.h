#pragma once

/// A launcher (mpirun) as a child of this process: started, asked to end when this process is, and waited
/// for, with all that it has started.

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "cli/stop_request.h"

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

/// Runs `line` until it and all that it has started on this host have ended.
///
/// It runs in a process group of its own, so that a terminal's Ctrl-C reaches this process alone. When `stop`
/// is requested, the workers here get the signal themselves: they end after their step and keep their
/// checkpoint, while mpirun goes on to read what they write. (Told to end, mpirun would be silent for
/// seconds, and then end them by force.) Where there is no worker here, mpirun is told. What has not ended
/// after `grace`, or at a second signal, is ended by force.
///
/// Its code is its exit code, 128 + the signal that ended it; 5 (communication) where it was running and gave
/// up with a code of its own, as mpirun does when it has lost a host. A launcher without processes on this
/// host is waited for as long as it takes. Processes that it leaves behind, as it does where it is killed,
/// are asked to end, and after `grace` ended by force: whoever comes next finds none of them.
///
/// Errors   Error(comm) that says what to install when the first word cannot be started
/// Threads  one at a time; it collects every child of this process
[[nodiscard]] Ended run_line(const std::vector<std::string>& line, const StopRequest& stop,
                             std::chrono::seconds grace);

}  // namespace paceline::cli
