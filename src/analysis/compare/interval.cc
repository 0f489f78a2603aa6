#include "analysis/compare/interval.h"

#include <algorithm>
#include <cmath>

namespace paceline::analysis {
namespace {

using Repeats = std::span<const std::vector<double>>;

std::vector<double> logs_of_medians(Repeats repeats) {
  std::vector<double> logs;
  for (const auto& steps : repeats) logs.push_back(std::log(measure::quantile(steps, 0.5)));
  return logs;
}

/// Half the width of the interval of the difference of two means of runs, on a logarithmic scale; 0 without
/// repeats.
double half_by_runs(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() < 2 && b.size() < 2) return 0;
  const double spread_a = a.size() < 2 ? variance(b) : variance(a);
  const double spread_b = b.size() < 2 ? variance(a) : variance(b);
  const double part_a = spread_a / static_cast<double>(a.size());
  const double part_b = spread_b / static_cast<double>(b.size());
  const double whole = part_a + part_b;
  if (whole <= 0) return 0;
  double unsure = 0;  // Welch and Satterthwaite: only spreads estimated from repeats contribute
  if (a.size() > 1) unsure += part_a * part_a / static_cast<double>(a.size() - 1);
  if (b.size() > 1) unsure += part_b * part_b / static_cast<double>(b.size() - 1);
  // A spread borrowed from the other side has its degrees of freedom, and is correlated with it.
  const bool is_borrowed = a.size() < 2 || b.size() < 2;
  const double degrees =
      is_borrowed ? static_cast<double>(std::max(a.size(), b.size()) - 1) : whole * whole / unsure;
  return measure::as_rare_as_two_errors(std::max(1.0, degrees)) * std::sqrt(whole);
}

}  // namespace

Estimate ratio_of_runs(Repeats a, Repeats b) {
  Estimate result = ratio(pooled(a), pooled(b));
  if (result.n < 2) return result;
  const auto runs_a = logs_of_medians(a), runs_b = logs_of_medians(b);
  const double half = half_by_runs(runs_a, runs_b);
  if (half <= 0) return result;
  result.is_too_few = false;  // the spread of runs gives an interval
  const double centre = measure::mean(runs_a) - measure::mean(runs_b);
  result.low = std::min(result.low, std::exp(centre - half));
  result.high = std::max(result.high, std::exp(centre + half));
  return result;
}

Change change_of(const Estimate& ratio, bool is_of_one_run, double noise) {
  const double least = is_of_one_run ? std::max(noise, kNoiseOfOneRun) : noise;
  if (ratio.low > 1 + least) return Change::improved;
  if (ratio.high < 1 - least) return Change::regressed;
  return ratio.low <= 1 && ratio.high >= 1 ? Change::no_change : Change::within_noise;
}

double variance(std::span<const double> values) {
  const double spread = measure::standard_deviation(values);
  return spread * spread;
}

Estimate exactly(double value) { return {.median = value, .low = value, .high = value, .n = 1}; }

bool has_interval(const Estimate& figure) { return figure.n > 1 && !figure.is_too_few; }

Estimate ratio(const Estimate& a, const Estimate& b) {
  const double value = a.median / b.median;
  const int n = std::min(a.n, b.n);
  const bool positive = a.low > 0 && b.low > 0;
  if (n < 2) return exactly(value);
  const bool is_too_few = a.is_too_few || b.is_too_few;
  if (!positive) {  // without logarithms: combine the ends, as if both errors occurred together
    return {.median = value,
            .low = a.low / b.high,
            .high = b.low > 0 ? a.high / b.low : value,
            .n = n,
            .is_too_few = is_too_few};
  }
  const double down = std::hypot(std::log(a.median / a.low), std::log(b.high / b.median));
  const double up = std::hypot(std::log(a.high / a.median), std::log(b.median / b.low));
  return {.median = value,
          .low = value * std::exp(-down),
          .high = value * std::exp(up),
          .n = n,
          .is_too_few = is_too_few};
}

Estimate scaled(const Estimate& figure, double factor) {
  return {.median = figure.median * factor,
          .low = figure.low * factor,
          .high = figure.high * factor,
          .n = figure.n,
          .is_too_few = figure.is_too_few};
}

Estimate over(double numerator, const Estimate& figure) {
  return {.median = numerator / figure.median,
          .low = numerator / figure.high,
          .high = numerator / figure.low,
          .n = figure.n,
          .is_too_few = figure.is_too_few};
}

Estimate pooled(std::span<const std::vector<double>> repeats) {
  std::vector<double> all;
  for (const auto& samples : repeats) all.insert(all.end(), samples.begin(), samples.end());
  if (all.empty()) return {};
  Estimate result = measure::estimate(all);
  if (repeats.size() < 2) {
    result.is_too_few = result.n < measure::kFewestForInterval;
    return result;
  }
  for (const auto& samples : repeats) {
    if (samples.empty()) continue;
    const double median = measure::quantile(samples, 0.5);
    result.low = std::min(result.low, median);
    result.high = std::max(result.high, median);
  }
  return result;
}

}  // namespace paceline::analysis
