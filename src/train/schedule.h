#pragma once

/// Computes the learning rate as a pure function of the update.

#include <cstdint>
#include <string>

#include "train/options.h"

namespace paceline::train {

/// The length of a training in updates.
struct Length {
  std::int64_t updates = 0;  ///< of the whole training
  std::int64_t updates_per_epoch = 1;
};

/// The learning rate of update `update` (from 0) with the given peak.
///
/// Warm-up (any kind): linear from 0, peak * (update + 1) / warm-up updates, so that the first update already
/// moves the weights; or from `warmup_start`, the rate of the first update. Then: constant; step: times
/// `step_factor` every `step_epochs` (counted from the start of training); cosine: half a cosine from the
/// peak to `final_factor` of it over the rest; one-cycle: half cosines from `one_cycle_start` up to the peak
/// at `one_cycle_peak` of the rest, and down to `final_factor`; plateau: constant here, and the caller
/// multiplies by the factor from validation (validation_watch.h).
///
/// Source   Loshchilov & Hutter, ICLR 2017 (cosine); Smith & Topin, 2018 (one-cycle)
[[nodiscard]] double learning_rate(const ScheduleOptions& options, double peak, std::int64_t update,
                                   const Length& length);

/// The peak after scaling with the global batch, and how it was computed.
struct ScaledRate {
  double base = 0, factor = 1, peak = 0;
  std::int64_t reference_batch = 0;
  std::string rule;      ///< "linear", "sqrt", "none"
  std::string sentence;  ///< "learning rate 0.1 x 4 = 0.4 (linear: global batch 512 / 128)"
};
[[nodiscard]] ScaledRate scaled_rate(const Options& options, std::int64_t global_batch);

}  // namespace paceline::train
