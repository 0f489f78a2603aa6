#pragma once

/// Finds out who is there: which processes of a host have started, and who has survived the loss of process
/// 0.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "comm/launch.h"
#include "comm/line_socket.h"

namespace paceline::comm {

// Finds out which processes of this host have started, before MPI or gloo has joined them. Until then nobody
// else can say who is missing.
//
// Each process holds a local socket named after the run and its number on the host. The socket disappears
// with the process. Others connect to it to see that the process is there, and the system tells them its id.

class StartupProbe {
 public:
  /// Opens this process's socket. If the launcher does not say who shares the host (Launch::job, local,
  /// locals) absent() is always empty.
  explicit StartupProbe(const Launch& launch);

  /// Processor time of the first thread of each process of this host; nothing for one that is not there.
  using CpuTimes = std::vector<std::optional<std::int64_t>>;
  [[nodiscard]] CpuTimes cpu_times() const;

  /// The processes of this host that keep the others waiting: "process 2 on host a has not begun", "process 1
  /// on host a (pid 812) is stopped", or "does nothing"; empty: all are there. Only the lowest process that
  /// is there gets the list; for the others it is empty.
  ///
  /// `before` is a cpu_times() of a second ago. A process that waits to meet the others polls for them all
  /// the time (MPI does, and so do we). So a process whose first thread has not run since then, while this
  /// one's has, keeps the others waiting.
  ///
  /// Cost     some system calls for each process of the host
  [[nodiscard]] std::vector<std::string> absent(const CpuTimes& before = {}) const;

 private:
  const Launch launch_;
  Socket socket_;
};

// Finds the survivors after process 0 is lost, which otherwise knows who is there.
//
// Every process but the first listens at a port of its own and answers; nothing is sent while all is well.
// When process 0 is lost, each process asks those with lower numbers, lowest first. A process that gets an
// answer leaves the report to the one that answered. A process that gets none is the lowest survivor, and
// knows that all below it are gone.

/// Answers "are you there?" until it is destroyed, even if the process's other threads hang.
class SurvivorProbe : public LineListener {
 public:
  /// `interface`: the network interface to listen on; "": any.
  ///
  /// Errors   Error(comm): no port could be opened
  explicit SurvivorProbe(const std::string& interface = "", bool is_on_this_host = false);
};

/// The answers that a process got from those below it.
struct Called {
  int lowest = 0;            ///< the lowest survivor, which may be the asking process
  std::vector<int> missing;  ///< processes below that, from 1, which gave no answer
};

/// Asks processes 1, 2, ... below `process` until one answers; `addresses` [process].
///
/// Cost     microseconds if process 1 answers; up to 0.5 s for each address of a process that does not
///          respond. A host that did not respond once is not asked again
[[nodiscard]] Called probe_survivors(int process, std::span<const Address> addresses);

/// For the lowest survivor: the processes above it that do not answer. If processes are assigned to hosts in
/// turn, a lost host takes some of these too.
///
/// Cost     a connection to each, and as above; after 1 s no more are asked or named
[[nodiscard]] std::vector<int> missing_above(int process, std::span<const Address> addresses);

}  // namespace paceline::comm
