#pragma once

/// Whether what was measured twice, before a change (A) and after it (B), became faster, and whether that is
/// more than chance: the words of Criterion, a benchmark library that people know.

#include <cstdint>
#include <span>
#include <vector>

#include "analysis/interval.h"

namespace paceline::analysis {

/// From the 95 % interval of the ratio B / A of a figure that is better when larger:
enum class Change : std::uint8_t {
  improved,      ///< all of it lies above 1 + noise
  regressed,     ///< all of it lies below 1 - noise
  no_change,     ///< it holds 1
  within_noise,  ///< neither: there is a difference, and some of it lies within the noise threshold
};

/// Below this a difference is nobody's concern, however surely it was measured.
inline constexpr double kNoise = 0.02;
/// The same where each side has one run: how far runs lie apart is not known there, and differences of some
/// percent between two runs of one program are usual.
inline constexpr double kNoiseOfOneRun = 0.10;

/// Images a second of B over those of A at one batch: seconds a step of A over those of B. The arguments are
/// the steps of each repeat, seconds, none empty.
///
/// Its interval is the wider of two, since either may be what is uncertain: that of the pooled medians
/// (steps; pooled()), and Welch's of the repeats' medians on the logarithm (runs), for which a side of one
/// repeat borrows the spread of the other. With one repeat on each side there is the first alone.
[[nodiscard]] Estimate ratio_of_runs(std::span<const std::vector<double>> a,
                                     std::span<const std::vector<double>> b);

/// Of a ratio of so many runs on each side. `noise`: for several runs; one run has at least kNoiseOfOneRun.
/// Precondition: has_interval(ratio)
[[nodiscard]] Change change_of(const Estimate& ratio, bool is_of_one_run, double noise = kNoise);

}  // namespace paceline::analysis
