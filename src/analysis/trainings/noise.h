#pragma once

/// Follows the gradient's noise scale (measure/noise_scale.h) over a training, since it changes with the
/// weights: mostly it grows while the loss falls.

#include <cstdint>
#include <optional>
#include <vector>

#include "measure/noise_scale.h"
#include "measure/record.h"

namespace paceline::analysis {

/// The measured steps behind a point, if the training has as many.
inline constexpr std::int64_t kStepsOfPoint = 100;
/// A batch of this part of the noise scale needs at most so much more samples than a small one.
inline constexpr double kAlmostNoMore = 0.1;

struct NoisePoint {
  double epochs = 0;  ///< trained up to its last step
  measure::NoiseScale scale;
};

struct NoiseCourse {
  std::int64_t small_batch = 0, large_batch = 0, every = 0;
  std::int64_t steps = 0;     ///< measured ones
  measure::NoiseScale whole;  ///< over all of them; the first, of large gradients, decide it
  std::optional<measure::NoiseScale> second_half;  ///< over the later half; none: too few steps
  std::vector<NoisePoint> points;  ///< neighbouring ones joined, at most 50 points; at least one
};

/// The course over the epochs whose batches are those of the last measured epoch. None: too few measured
/// steps.
[[nodiscard]] std::optional<NoiseCourse> noise_course(const measure::Record& record);

}  // namespace paceline::analysis
