#include "measure/noise_scale.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "measure/statistics.h"

namespace paceline::measure {
namespace {

/// Means of `of` consecutive values each. A rest is left out.
std::vector<double> means_of(std::span<const double> values, std::size_t of) {
  std::vector<double> means;
  for (std::size_t at = 0; at + of <= values.size(); at += of) means.push_back(mean(values.subspan(at, of)));
  return means;
}

/// Of a mean of pairs: the variances of both, and their covariance.
struct ErrorOfMeans {
  double first = 0, second = 0, both = 0;
};
ErrorOfMeans error_of_means(std::span<const double> first, std::span<const double> second) {
  const double mean_first = mean(first), mean_second = mean(second);
  ErrorOfMeans sums;
  for (std::size_t i = 0; i < first.size(); ++i) {
    const double a = first[i] - mean_first, b = second[i] - mean_second;
    sums.first += a * a;
    sums.second += b * b;
    sums.both += a * b;
  }
  const auto n = static_cast<double>(first.size());
  const double scale = 1 / (n * (n - 1));
  return {scale * sums.first, scale * sums.second, scale * sums.both};
}

}  // namespace

GradientSquares with_few_values(GradientSquares squares) {
  const std::size_t of = (squares.small.size() + kMostSquares - 1) / kMostSquares;
  if (of <= 1) return squares;
  squares.small = means_of(squares.small, of);
  squares.large = means_of(squares.large, of);
  squares.mean_of *= static_cast<std::int64_t>(of);
  return squares;
}

std::optional<NoiseScale> noise_scale(std::span<const double> small, std::span<const double> large,
                                      std::int64_t small_batch, std::int64_t large_batch) {
  base::expects(small.size() == large.size(), "each step has squares of both batches");
  base::expects(0 < small_batch && small_batch < large_batch, "the small batch is smaller");
  if (small.size() < kFewestSquares) return std::nullopt;
  const auto b = static_cast<double>(small_batch), all = static_cast<double>(large_batch);
  std::vector<double> variances, gradients;
  for (std::size_t i = 0; i < small.size(); ++i) {
    variances.push_back((small[i] - large[i]) / (1 / b - 1 / all));
    gradients.push_back((all * large[i] - b * small[i]) / (all - b));
  }
  NoiseScale scale{.variance = mean(variances),
                   .squared_gradient = mean(gradients),
                   .values = static_cast<int>(small.size())};
  if (scale.squared_gradient > 0) scale.batch = std::max(0.0, scale.variance / scale.squared_gradient);

  constexpr std::size_t kMostBlocks = 40;
  const std::size_t of = (small.size() + kMostBlocks - 1) / kMostBlocks;
  variances = means_of(variances, of);
  gradients = means_of(gradients, of);
  const ErrorOfMeans error = error_of_means(variances, gradients);
  // The interval has all x with (S - x G)^2 <= t^2 var(S - x G): a x^2 - 2 h x + c <= 0.
  const double t2 = std::pow(student_quantile(0.975, static_cast<double>(variances.size() - 1)), 2);
  const double s = scale.variance, g = scale.squared_gradient;
  const double a = g * g - t2 * error.second, h = s * g - t2 * error.both, c = s * s - t2 * error.first;
  const double root = std::sqrt(std::max(0.0, h * h - a * c));
  if (a > 0) {
    scale.low = g > 0 ? std::max(0.0, (h - root) / a) : 0;
    if (g > 0) scale.high = std::max(0.0, (h + root) / a);
  } else if (a < 0 && h * h > a * c) {
    // Everything but what lies between the roots. If S cannot be told from 0 (c < 0) that contains 0.
    scale.low = c > 0 ? std::max(0.0, (h - root) / a) : 0;
  }
  return scale;
}

}  // namespace paceline::measure
