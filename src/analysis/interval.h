#pragma once

/// Arithmetic on figures that carry an interval: how the interval of a ratio follows from those of its parts.
///
/// Intervals are propagated in quadrature on the logarithm: the parts are independent measurements of
/// positive quantities, so the logarithms of their errors add like the sides of a right angle. (Dividing the
/// ends of one interval by the opposite ends of the other would assume that both err at once; for two equal
/// 95 % intervals that gives a 99.4 % one.) A figure of one sample (n = 1) has no interval, and no figure
/// made from it has one.

#include <span>
#include <vector>

#include "measure/statistics.h"

namespace paceline::analysis {

using measure::Estimate;

/// A figure known without error, or of one sample: no interval is shown.
[[nodiscard]] Estimate exactly(double value);
[[nodiscard]] bool has_interval(const Estimate& figure);

/// a / b, n the smaller of the two. Precondition: b.median != 0; both positive where intervals matter.
[[nodiscard]] Estimate ratio(const Estimate& a, const Estimate& b);
/// figure x factor, factor > 0.
[[nodiscard]] Estimate scaled(const Estimate& figure, double factor);
/// numerator / figure: images a step over seconds a step.
[[nodiscard]] Estimate over(double numerator, const Estimate& figure);

/// The median over the samples of all repeats. The interval is that of the pooled median, widened to the
/// medians of the repeats: steps of one run are alike, runs are not.
[[nodiscard]] Estimate pooled(std::span<const std::vector<double>> repeats);

}  // namespace paceline::analysis
