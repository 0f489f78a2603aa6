#pragma once

/// When and how stalled workers of one process are reported.

#include <chrono>
#include <functional>
#include <string>

#include "base/error.h"

namespace paceline::comm {

struct StallOptions {
  std::chrono::milliseconds held_up{3000};
  /// Prints a warning; called from a worker's thread or the group's. With several processes process 0 warns
  /// instead. If empty, nobody checks whether all workers hang.
  std::function<void(const std::string&)> say = {};
  /// Called once when the workers have failed; must be quick. Destroyed with their communicators.
  std::function<void(const std::string&, base::ErrorKind)> failed = {};
};

}  // namespace paceline::comm
