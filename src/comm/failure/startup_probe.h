#pragma once

/// Finds out which processes of this host have started, before MPI or gloo has joined them. Until then nobody
/// else can say who is missing.
///
/// Each process holds a local socket named after the run and its number on the host. The socket disappears
/// with the process. Others connect to it to see that the process is there, and the system tells them its id.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/launch.h"

namespace paceline::comm {

class StartupProbe {
 public:
  /// Opens this process's socket. If the launcher does not say who shares the host (Launch::job, local,
  /// locals) absent() is always empty.
  explicit StartupProbe(const Launch& launch);
  ~StartupProbe();
  StartupProbe(const StartupProbe&) = delete;
  StartupProbe& operator=(const StartupProbe&) = delete;

  /// Processor time of the first thread of each process of this host; nothing for one that is not there.
  using Glance = std::vector<std::optional<std::int64_t>>;
  [[nodiscard]] Glance glance() const;

  /// The processes of this host that keep the others waiting: "process 2 on host a has not begun", "process 1
  /// on host a (pid 812) is stopped", or "does nothing"; empty: all are there. Only the lowest process that
  /// is there gets the list; for the others it is empty.
  ///
  /// `before` is a glance of a second ago. A process that waits to meet the others polls for them all the
  /// time (MPI does, and so do we). So a process whose first thread has not run since then, while this one's
  /// has, keeps the others waiting.
  ///
  /// Cost     some system calls for each process of the host
  [[nodiscard]] std::vector<std::string> absent(const Glance& before = {}) const;

 private:
  const Launch launch_;
  int socket_ = -1;
};

}  // namespace paceline::comm
