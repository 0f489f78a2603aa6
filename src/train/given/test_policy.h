#pragma once

/// Decides when a training reads its test and validation sets.

#include "train/given/options.h"

namespace paceline::train {

/// The value of --test-set, or its default: `never` with --evaluate-every 0, `last` with a validation set,
/// otherwise `every`.
[[nodiscard]] inline TestSet test_policy(const Options& options, bool has_validation) {
  if (options.test_set) return *options.test_set;
  if (options.evaluate_every <= 0) return TestSet::never;
  return has_validation ? TestSet::last : TestSet::every;
}

/// Whether a training with these options evaluates its validation set, if it has one. A timed window does
/// not.
[[nodiscard]] inline bool validates(const Options& options, bool has_validation) {
  return has_validation && options.window_steps == 0 && options.evaluate_every > 0;
}

}  // namespace paceline::train
