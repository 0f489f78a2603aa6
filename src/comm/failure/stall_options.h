#pragma once

/// What is said of a worker that lets the others of its process wait, or of all where all hang, and when.

#include <chrono>
#include <functional>
#include <string>

#include "base/error.h"

namespace paceline::comm {

struct StallOptions {
  std::chrono::milliseconds held_up{3000};
  /// From a worker's thread or the group's; among processes process 0 says it. Without it nobody looks
  /// whether all hang.
  std::function<void(const std::string&)> say = {};
  /// The workers have failed: called once, must be quick; what it holds goes with their communicators.
  std::function<void(const std::string&, base::ErrorKind)> failed = {};
};

}  // namespace paceline::comm
