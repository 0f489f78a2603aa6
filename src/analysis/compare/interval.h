#pragma once

/// Computes with figures that have intervals: gives the interval of a ratio from those of its parts.
///
/// Intervals are combined in quadrature on the logarithm: the parts are independent measurements of positive
/// quantities, so the variances of their logarithms add. (Dividing the ends of one interval by the opposite
/// ends of the other would assume that both err at once; for two equal 95 % intervals that gives a 99.4 %
/// one.) A figure of one sample (n = 1) has no interval, and neither has a figure computed from it.

#include <span>
#include <vector>

#include "measure/statistics.h"

namespace paceline::analysis {

using measure::Estimate;

/// A figure without error, or of one sample: no interval is shown.
[[nodiscard]] Estimate exactly(double value);
[[nodiscard]] bool has_interval(const Estimate& figure);

/// a / b; n is the smaller of the two.
///
/// Requires  b.median != 0; both positive if they have intervals
[[nodiscard]] Estimate ratio(const Estimate& a, const Estimate& b);
/// figure x factor, factor > 0.
[[nodiscard]] Estimate scaled(const Estimate& figure, double factor);
/// numerator / figure: images per step over seconds per step.
[[nodiscard]] Estimate over(double numerator, const Estimate& figure);

/// The median over the samples of all repeats. Its interval is that of the pooled median, widened to contain
/// the medians of the repeats, since steps of one run are more alike than runs.
[[nodiscard]] Estimate pooled(std::span<const std::vector<double>> repeats);

}  // namespace paceline::analysis
