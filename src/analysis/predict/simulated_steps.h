#pragma once

/// Draws every worker of every step of a forecast (simulate_workers.h): what the closed form's expected
/// maximum, and its steps of one length, leave out.

#include <cstdint>
#include <vector>

#include "analysis/predict/forecast.h"

namespace paceline::analysis {

struct SimulatedPoint {
  std::int64_t workers = 1;
  double mean_s = 0;
  double low_s = 0, high_s = 0;  ///< of the middle 90 % of the steps
  double closed_s = 0;           ///< the closed form's step
};

/// For each point of the forecast.
///
/// Cost     50 ns for each worker and step
[[nodiscard]] std::vector<SimulatedPoint> simulated_points(const StepModel& model, const Forecast& forecast,
                                                           int steps);

}  // namespace paceline::analysis
