#pragma once

/// When a training reads its test set.

#include "train/options.h"

namespace paceline::train {

/// What --test-set says, or what follows from the rest: `never` with --evaluate-every 0; `last` where a
/// validation part is there to choose on; `every` otherwise.
[[nodiscard]] inline TestSet test_policy(const Options& options, bool has_validation) {
  if (options.test_set) return *options.test_set;
  if (options.evaluate_every <= 0) return TestSet::never;
  return has_validation ? TestSet::last : TestSet::every;
}

/// Whether a training of these options evaluates its validation part, if it has one. A timed window does not.
[[nodiscard]] inline bool validates(const Options& options, bool has_validation) {
  return has_validation && options.window_steps == 0 && options.evaluate_every > 0;
}

}  // namespace paceline::train
