#pragma once

/// Failure: the failure of a run of several processes, as they report it to one another.

#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "base/error.h"

namespace paceline::comm {

/// Why a run failed. The kind determines the exit code of every process.
struct Failure {
  base::ErrorKind kind = base::ErrorKind::comm;
  std::string text;
  std::optional<double> detection_s = {};  ///< of a loss: from the last sign of life to its detection
  int speaker = 0;  ///< the process that reports it: 0, or the lowest survivor when 0 is lost
  base::TimePoint known_at = base::Clock::now();
  /// Whether process 0 itself is lost, which otherwise reports failures and writes the record.
  [[nodiscard]] bool of_first() const { return speaker != 0; }
};

/// "KIND MS TEXT" in one line; MS: the detection time, or -. The speaker is not sent: a process that hears of
/// a failure from process 0 leaves the report to process 0.
[[nodiscard]] std::string line_of(const Failure& failure);
[[nodiscard]] Failure failure_of(std::string_view line);

}  // namespace paceline::comm
