#pragma once

/// Computes medians, intervals and errors from raw samples. Pure functions.

#include <span>
#include <vector>

namespace paceline::measure {

/// A figure as tables show it. With one sample low = high = median and n = 1; tables then print no interval
/// and say so.
struct Estimate {
  double median = 0;
  double low = 0;  ///< 95 % interval of the median (order statistics, binomial; for n < 6 the extremes)
  double high = 0;
  int n = 0;
};

[[nodiscard]] double quantile(std::span<const double> samples,
                              double q);  ///< linear between order statistics
[[nodiscard]] Estimate estimate(std::span<const double> samples);
[[nodiscard]] double mean(std::span<const double> samples);
[[nodiscard]] double standard_deviation(std::span<const double> samples);  ///< n - 1; 0 for fewer than two

/// Standard error of an accuracy `p` counted on `samples` images, combined with the spread over seeds:
/// sqrt(p(1-p)/samples + variance(seeds)/n).
[[nodiscard]] double accuracy_standard_error(std::span<const double> accuracies, long samples);

/// The number of estimated standard errors that chance exceeds as rarely as two known ones (4.6 %): 2 for a
/// known error, 4.5 for an error estimated with 2 degrees of freedom, as from two pairs of runs. `degrees` is
/// at least 1, infinite for a known error.
[[nodiscard]] double as_rare_as_two_errors(double degrees);

}  // namespace paceline::measure
