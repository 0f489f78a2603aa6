#include "analysis/trainings/claim.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>
#include <vector>

#include "analysis/compare/interval.h"
#include "base/error.h"
#include "measure/statistics.h"

namespace paceline::analysis {
namespace {

constexpr double kMostOrders = 200'000;
/// Normal quantiles of the error of "no worse" (5 %) and of missing it (20 %), which give the number of
/// seeds.
constexpr double kErrorOfNoWorse = 1.645, kMissed = 0.842;
/// Sums of the same accuracies in another order are equal but for rounding.
constexpr double kRounding = 1e-12;

std::vector<double> accuracies_of(std::span<const SeedAccuracy> seeds) {
  std::vector<double> accuracies;
  for (const SeedAccuracy& one : seeds) accuracies.push_back(one.accuracy);
  return accuracies;
}

/// other - baseline for each seed that both have.
std::vector<double> paired_differences(std::span<const SeedAccuracy> baseline,
                                       std::span<const SeedAccuracy> other) {
  std::vector<double> differences;
  for (const SeedAccuracy& one : other) {
    const auto same = std::ranges::find(baseline, one.seed, &SeedAccuracy::seed);
    if (!one.seed.empty() && same != baseline.end()) differences.push_back(one.accuracy - same->accuracy);
  }
  return differences;
}

/// Each difference might as well have had the other sign: the share of all signs with a sum as low.
void permute_signs(Claim& claim, std::span<const double> differences) {
  const std::size_t n = differences.size();
  const double orders = std::ldexp(1.0, static_cast<int>(n));
  claim.least_p = 1 / orders;
  if (orders > kMostOrders) return;
  const double seen = std::accumulate(differences.begin(), differences.end(), 0.0) + kRounding;
  std::size_t as_low = 0;
  for (std::size_t signs = 0; signs < (std::size_t{1} << n); ++signs) {
    double total = 0;
    for (std::size_t i = 0; i < n; ++i) total += (signs >> i & 1U) != 0 ? -differences[i] : differences[i];
    as_low += total <= seen ? 1 : 0;
  }
  claim.p = static_cast<double>(as_low) / orders;
}

/// Each accuracy might as well have been the other training's: the share of all divisions with a sum as low.
void permute_sides(Claim& claim, std::span<const double> baseline, std::span<const double> other) {
  std::vector<double> all(baseline.begin(), baseline.end());
  all.insert(all.end(), other.begin(), other.end());
  double orders = 1;
  for (std::size_t i = 1; i <= other.size(); ++i)
    orders *= static_cast<double>(baseline.size() + i) / static_cast<double>(i);
  claim.least_p = 1 / orders;
  if (orders > kMostOrders) return;
  std::vector<char> is_other(all.size(), 0);
  std::fill(is_other.begin(), is_other.begin() + static_cast<std::ptrdiff_t>(other.size()), 1);
  const double seen = std::accumulate(other.begin(), other.end(), 0.0) + kRounding;
  double as_low = 0;
  do {
    double total = 0;
    for (std::size_t i = 0; i < all.size(); ++i) total += is_other[i] != 0 ? all[i] : 0;
    as_low += total <= seen ? 1 : 0;
  } while (std::prev_permutation(is_other.begin(), is_other.end()));
  claim.p = as_low / orders;
}

ClaimVerdict verdict_of(const Claim& claim) {
  const bool is_within = claim.bound > -claim.margin;
  if (claim.high < 0) return is_within ? ClaimVerdict::worse_within_margin : ClaimVerdict::worse;
  return is_within ? ClaimVerdict::no_worse : ClaimVerdict::not_decided;
}

}  // namespace

const char* word_of(ClaimVerdict verdict) {
  constexpr std::array kWords{"no worse", "worse, within the margin", "worse", "not decided"};
  return kWords[static_cast<std::size_t>(verdict)];
}

std::optional<Claim> claim(std::span<const SeedAccuracy> baseline, std::span<const SeedAccuracy> other,
                           double margin) {
  base::expects(margin > 0, "margin > 0");
  if (baseline.size() < 2 || other.size() < 2) return std::nullopt;
  const auto before = accuracies_of(baseline), after = accuracies_of(other);
  const auto differences = paired_differences(baseline, other);
  Claim result{.margin = margin};
  double error = 0, degrees = 1, spread = 0;  // spread: sqrt(n) times the error, with n seeds of each
  if (differences.size() == std::min(baseline.size(), other.size())) {
    const auto n = static_cast<double>(differences.size());
    result.pairs = static_cast<int>(differences.size());
    result.difference = measure::mean(differences);
    spread = measure::standard_deviation(differences);
    error = spread / std::sqrt(n);
    degrees = n - 1;
    permute_signs(result, differences);
  } else {
    const auto n = static_cast<double>(before.size()), m = static_cast<double>(after.size());
    const double a = variance(before) / n, b = variance(after) / m;
    result.difference = measure::mean(after) - measure::mean(before);
    spread = std::sqrt(variance(before) + variance(after));
    error = std::sqrt(a + b);
    const double unsure = a * a / (n - 1) + b * b / (m - 1);
    degrees = unsure > 0 ? (a + b) * (a + b) / unsure : n + m - 2;
    permute_sides(result, before, after);
  }
  const double half = measure::student_quantile(0.975, degrees) * error;
  result.low = result.difference - half;
  result.high = result.difference + half;
  result.bound = result.difference - measure::student_quantile(0.95, degrees) * error;
  result.verdict = verdict_of(result);
  const double seeds = std::pow((kErrorOfNoWorse + kMissed) * spread / margin, 2);
  const auto most = static_cast<double>(std::max(before.size(), after.size()));
  result.seeds_needed = static_cast<int>(std::min(1e6, std::max(std::ceil(seeds), most + 1)));
  return result;
}

}  // namespace paceline::analysis
