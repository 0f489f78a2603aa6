#pragma once

/// When and how a process reports that some of its workers wait too long for others.

#include <chrono>
#include <functional>
#include <string>

#include "base/error.h"

namespace paceline::comm {

struct StallOptions {
  /// How long a collective may wait for a worker before the first warning.
  std::chrono::milliseconds held_up{3000};
  /// Prints a warning. Called from a worker's thread or from a thread of the communicator. Of warnings about
  /// one late worker it prints only those of a run of one process: with several processes, process 0 finds
  /// late workers by itself. If it is empty, nothing is printed, and nobody checks whether all workers hang
  /// at once.
  std::function<void(const std::string&)> say = {};
  /// Called once, with the reason, when a collective of the workers fails for any reason; must be quick. The
  /// communicators of the workers own it.
  std::function<void(const std::string&, base::ErrorKind)> failed = {};
};

}  // namespace paceline::comm
