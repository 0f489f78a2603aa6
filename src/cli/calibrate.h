#pragma once

/// Estimates what cells cost that no older record tells, from a few steps that are timed now. Nothing is
/// written.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "study/study.h"

namespace paceline::cli {

/// Real durations were 0.6 to 1.6 times the estimate in what was tried (docs/results/README.md); other
/// programs and figures of set-ups that were not timed move it.
inline constexpr double kCalibrationLow = 0.6, kCalibrationHigh = 1.6;

struct Calibration {
  /// [cells] Expected seconds; none where nothing could be timed. A cell that runs only if chosen is not
  /// weighted.
  std::vector<std::optional<double>> seconds;
  std::string text;  ///< "3 steps each of batch 8 and 512 in 2.1 s"; empty if nothing was timed
};

/// Times three steps of one worker with the smallest batch of each model, with the largest that ends in time,
/// and with the most workers, each in this process. The others follow by their images
/// (screen/remaining_time.h).
///
/// `cores`: that the workers of a cell share, over all hosts
/// Cost     a few seconds for each of at most three models
[[nodiscard]] Calibration calibrate(const std::vector<study::PlannedCell>& cells, int cores);

}  // namespace paceline::cli
