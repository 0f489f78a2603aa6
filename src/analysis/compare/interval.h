#pragma once

/// Computes with figures that have intervals: gives the interval of a ratio from those of its parts.
///
/// Intervals are combined in quadrature on the logarithm: the parts are independent measurements of positive
/// quantities, so the variances of their logarithms add. (Dividing the ends of one interval by the opposite
/// ends of the other would assume that both err at once; for two equal 95 % intervals that gives a 99.4 %
/// one.) A figure of one sample (n = 1), or of fewer than six steps of one run, has no interval, and neither
/// has a figure computed from it.

#include <cstdint>
#include <span>
#include <vector>

#include "measure/statistics.h"

namespace paceline::analysis {

using measure::Estimate;

/// A figure without error, or of one sample: no interval is shown.
[[nodiscard]] Estimate exactly(double value);
[[nodiscard]] bool has_interval(const Estimate& figure);
/// Of a sample: the square of its standard deviation.
[[nodiscard]] double variance(std::span<const double> values);

/// a / b; n is the smaller of the two.
///
/// Requires  b.median != 0; both positive if they have intervals
[[nodiscard]] Estimate ratio(const Estimate& a, const Estimate& b);
/// figure x factor, factor > 0.
[[nodiscard]] Estimate scaled(const Estimate& figure, double factor);
/// numerator / figure: images per step over seconds per step.
[[nodiscard]] Estimate over(double numerator, const Estimate& figure);

/// The median over the samples of all repeats. Its interval is that of the pooled median, widened to contain
/// the medians of the repeats, since steps of one run are more alike than runs. Fewer than six samples of a
/// single repeat have none.
[[nodiscard]] Estimate pooled(std::span<const std::vector<double>> repeats);

// Decides whether a program became faster between two measurements, A before a change and B after it, beyond
// chance. The words (improved, regressed, ...) are those of Criterion, a benchmark library.

/// From the 95 % interval of the ratio B / A of a figure that is better when larger:
enum class Change : std::uint8_t {
  improved,      ///< all of it is above 1 + noise
  regressed,     ///< all of it is below 1 - noise
  no_change,     ///< it contains 1
  within_noise,  ///< there is a difference, but a part of the interval is within the noise threshold
};

/// Noise threshold: smaller differences do not matter, however surely they were measured.
inline constexpr double kNoise = 0.02;
/// The threshold if each side has one run. Then the spread of runs is unknown, and differences of some
/// percent between two runs of one program are usual.
inline constexpr double kNoiseOfOneRun = 0.10;

/// Images per second of B over those of A at one batch, which is seconds per step of A over those of B. The
/// arguments are the steps of each repeat in seconds, none empty.
///
/// The interval is the wider of two: that of the pooled medians (uncertain steps; pooled()), and Welch's of
/// the logarithms of the repeats' medians (uncertain runs), for which a side with one repeat uses the spread
/// of the other. With one repeat on each side there is only the first.
[[nodiscard]] Estimate ratio_of_runs(std::span<const std::vector<double>> a,
                                     std::span<const std::vector<double>> b);

/// The change for a ratio. `noise`: for several runs; for one run on each side it is at least kNoiseOfOneRun.
///
/// Requires  has_interval(ratio)
[[nodiscard]] Change change_of(const Estimate& ratio, bool is_of_one_run, double noise = kNoise);

}  // namespace paceline::analysis
