#pragma once

/// What the runs of one process know from the runs before them.

#include <atomic>

#include "data/image/inspect.h"

namespace paceline::train {

/// Shared by all backends of a command, so that its later runs do not pay twice.
///
/// Threads  any number at once
struct ProcessHistory {
  std::atomic<bool> has_run{false};  ///< a run has computed: the process holds what a first run adds
  data::BrokenImageCache broken_images;
};

}  // namespace paceline::train
