#pragma once

/// Which of the processes that a launcher started on this host have begun, before any library has joined
/// them: until then nobody else can say who is missing.
///
/// Each holds a local socket whose name is made of the run and of its number on the host. It goes with the
/// process; that one is there is seen by connecting to it, and the system says whose it is.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "comm/launch.h"

namespace paceline::comm {

class StartupProbe {
 public:
  /// Holds this process's mark from now on. Where the launcher does not say who shares the host (Launch::job,
  /// local, locals) nobody is ever missed.
  explicit StartupProbe(const Launch& launch);
  ~StartupProbe();
  StartupProbe(const StartupProbe&) = delete;
  StartupProbe& operator=(const StartupProbe&) = delete;

  /// How long the first thread of each process of this host has run; nothing of one that is not there.
  using Glance = std::vector<std::optional<std::int64_t>>;
  [[nodiscard]] Glance glance() const;

  /// "process 2 on host a has not begun", "process 1 on host a (pid 812) is stopped", or "does nothing": who
  /// keeps the others waiting as far as this host can know; empty: all of it are there. Only the lowest
  /// process of the host that is there is told; the others hear nothing.
  ///
  /// `before`, of a second ago: one that waits to meet the others looks for them all the time (MPI does, and
  /// so do we), so one whose first thread has not run since, while this one's has, is what they wait for.
  ///
  /// Cost   some system calls for each process of the host
  [[nodiscard]] std::vector<std::string> absent(const Glance& before = {}) const;

 private:
  const Launch launch_;
  int socket_ = -1;
};

}  // namespace paceline::comm
