#pragma once

/// How a run of several processes failed, and what they tell one another of it.

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"

namespace paceline::comm {

/// How a run ended that failed: the kind is the exit code everywhere.
struct Failure {
  base::ErrorKind kind = base::ErrorKind::comm;
  std::string text;
  std::optional<double> detection_s = {};  ///< of a loss: from the last that was heard to its being known
  int speaker = 0;  ///< which process says it: the first, and where that is lost the lowest that is there
  base::TimePoint known_at = base::Clock::now();
  /// Process 0 itself is lost, which else speaks and writes for all.
  [[nodiscard]] bool of_first() const { return speaker != 0; }
};

/// "KIND MS TEXT", in one line; MS: how long a loss took to be known, or -. Who speaks is not told: whoever
/// is told by process 0 leaves it to that one.
[[nodiscard]] std::string line_of(const Failure& failure);
[[nodiscard]] Failure failure_of(std::string_view line);

}  // namespace paceline::comm
