#pragma once

/// Two naive predictions of the same steps, to be better than: a constant overhead, and the universal
/// scalability law (Gunther). Both see the measured times of steps and nothing else.

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "analysis/steps/scaling.h"

namespace paceline::analysis {

struct TimedStep {
  double workers = 1, seconds = 0;
};

struct Rivals {
  /// The overhead of the most measured workers, whatever their number: weak t(N) = t(M); strong
  /// t(N) = t(1)/N + (t(M) - t(1)/M).
  std::vector<double> constant_overhead;
  /// Throughput N / (1 + a (N - 1) + b N (N - 1)), a and b at least 0 with the least squared error in N /
  /// throughput; b = 0 where fewer than three numbers of workers were measured.
  std::vector<double> scalability_law;
};
inline constexpr std::string_view kConstantOverhead = "constant overhead";
inline constexpr std::string_view kScalabilityLaw = "universal scalability law";

/// Seconds for each of `workers`.
///
/// Shapes    measured: ascending, the fewest first
/// Requires  measured is not empty
[[nodiscard]] Rivals rivals(std::span<const TimedStep> measured, std::span<const std::int64_t> workers,
                            Mode mode);

}  // namespace paceline::analysis
