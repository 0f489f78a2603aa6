#include "analysis/compare/interval.h"

#include <algorithm>
#include <cmath>

namespace paceline::analysis {

Estimate exactly(double value) { return {.median = value, .low = value, .high = value, .n = 1}; }

bool has_interval(const Estimate& figure) { return figure.n > 1; }

Estimate ratio(const Estimate& a, const Estimate& b) {
  const double value = a.median / b.median;
  const int n = std::min(a.n, b.n);
  const bool positive = a.low > 0 && b.low > 0;
  if (n < 2) return exactly(value);
  if (!positive) {  // without logarithms: combine the ends, as if both errors occurred together
    return {.median = value, .low = a.low / b.high, .high = b.low > 0 ? a.high / b.low : value, .n = n};
  }
  const double down = std::hypot(std::log(a.median / a.low), std::log(b.high / b.median));
  const double up = std::hypot(std::log(a.high / a.median), std::log(b.median / b.low));
  return {.median = value, .low = value * std::exp(-down), .high = value * std::exp(up), .n = n};
}

Estimate scaled(const Estimate& figure, double factor) {
  return {.median = figure.median * factor,
          .low = figure.low * factor,
          .high = figure.high * factor,
          .n = figure.n};
}

Estimate over(double numerator, const Estimate& figure) {
  return {.median = numerator / figure.median,
          .low = numerator / figure.high,
          .high = numerator / figure.low,
          .n = figure.n};
}

Estimate pooled(std::span<const std::vector<double>> repeats) {
  std::vector<double> all;
  for (const auto& samples : repeats) all.insert(all.end(), samples.begin(), samples.end());
  if (all.empty()) return {};
  Estimate result = measure::estimate(all);
  if (repeats.size() < 2) return result;
  for (const auto& samples : repeats) {
    if (samples.empty()) continue;
    const double median = measure::quantile(samples, 0.5);
    result.low = std::min(result.low, median);
    result.high = std::max(result.high, median);
  }
  return result;
}

}  // namespace paceline::analysis
