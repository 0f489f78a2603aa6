#pragma once

/// Callbacks by which a run reports its progress.

#include <cstdint>
#include <functional>
#include <string>

#include "measure/events.h"
#include "measure/record.h"

namespace paceline::train {

/// Called by rank 0's thread during the run. All may be empty.
struct Progress {
  std::function<void(const std::string& line)>
      say;  ///< one line for the screen: the plan, the learning rate's rule, a warning
  std::function<void(std::int64_t step, std::int64_t steps, double loss, double images_per_s)> step;
  std::function<void(const measure::EpochRecord&)> epoch;
  std::function<void(const measure::Event&)>
      event;  ///< for events.jsonl (docs/formats.md); also called by run()
};

}  // namespace paceline::train
