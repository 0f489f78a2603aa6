#pragma once

/// State that later runs of a process take over from earlier ones.

#include <atomic>

#include "data/image/inspect.h"

namespace paceline::train {

/// Shared by all backends of a command, so that later runs do not repeat work.
///
/// Threads  any number at once
struct ProcessHistory {
  std::atomic<bool> has_run{false};  ///< a run has computed, so its one-time memory is already allocated
  data::BrokenImageCache broken_images;
};

}  // namespace paceline::train
