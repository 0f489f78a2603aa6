#include "measure/statistics.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>

#include "base/error.h"

namespace paceline::measure {
namespace {

constexpr double kConfidence = 0.95;

/// The samples sorted, without missing ones (NaN).
std::vector<double> in_order(std::span<const double> samples) {
  std::vector<double> sorted;
  std::copy_if(samples.begin(), samples.end(), std::back_inserter(sorted),
               [](double x) { return !std::isnan(x); });
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

double quantile_of_sorted(const std::vector<double>& sorted, double q) {
  const double at = std::clamp(q, 0.0, 1.0) * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const double fraction = at - static_cast<double>(below);
  if (fraction == 0) return sorted[below];
  return sorted[below] + fraction * (sorted[below + 1] - sorted[below]);
}

/// The largest k (from 1) for which the k-th smallest and k-th largest of n samples enclose the median of
/// their distribution, whatever its shape, with at least 95 % probability; 0 if even the extremes do not (n <
/// 6).
///
/// Each sample falls below the median with probability 1/2, so the interval misses it with 2 P(Binomial(n,
/// 1/2) < k).
int interval_rank(int n) {
  const double ln_half = std::log(0.5);
  double below = 0;  // P(Binomial(n, 1/2) < k), summed term by term
  for (int k = 1; k <= n / 2; ++k) {
    const int i = k - 1;
    below += std::exp(std::lgamma(n + 1.0) - std::lgamma(i + 1.0) - std::lgamma(n - i + 1.0) + n * ln_half);
    if (1 - 2 * below < kConfidence) return k - 1;
  }
  return n / 2;
}

/// For a candidate that stopped early with every seed: compare as far as the longest of the others.
constexpr std::int64_t kItsEnd = std::numeric_limits<std::int64_t>::max();

std::int64_t updates_of(const Record& record) {
  return record.epochs.empty() ? 0 : record.epochs.back().updates;
}

std::string seed_of(const Record& record) {
  const auto found = record.settings.find("seed");
  return found == record.settings.end() ? "" : found->second;
}

bool is_better_figure(const ValidationFigure& a, const ValidationFigure& b) {
  return a.accuracy != b.accuracy ? a.accuracy > b.accuracy : a.loss < b.loss;
}

/// Takes the record if it is longer than that of the same seed so far, or equally long and complete.
void take(Candidate& candidate, const Record& record) {
  const auto same = std::find_if(candidate.records.begin(), candidate.records.end(),
                                 [&](const Record* other) { return seed_of(*other) == seed_of(record); });
  if (same == candidate.records.end())
    candidate.records.push_back(&record);
  else if (updates_of(record) > updates_of(**same) ||
           (updates_of(record) == updates_of(**same) && record.status == "complete"))
    *same = &record;
}

void finish(Candidate& candidate, std::int64_t epochs) {
  std::vector<double> losses;
  candidate.reached = kItsEnd;
  for (const Record* record : candidate.records) {
    const auto figure = best_validated(*record, epochs);
    const bool has_ended = record->chosen && record->chosen->stopped_early;
    if (!has_ended)
      candidate.reached = std::min(
          candidate.reached, record->epochs.empty() ? 0 : std::min(record->epochs.back().epoch, epochs));
    if (!figure || record->status == "failed" || record->status == "skipped") {
      if (candidate.failure.empty())
        candidate.failure = record->reason.empty() ? "it has no validation figure" : record->reason;
      continue;
    }
    candidate.accuracies.push_back(figure->accuracy);
    losses.push_back(figure->loss);
  }
  if (candidate.accuracies.empty()) return;
  candidate.accuracy = mean(candidate.accuracies);
  candidate.loss = mean(losses);
}

}  // namespace

double quantile(std::span<const double> samples, double q) {
  const auto sorted = in_order(samples);
  if (sorted.empty()) return std::numeric_limits<double>::quiet_NaN();
  return quantile_of_sorted(sorted, q);
}

Estimate estimate(std::span<const double> samples) {
  const auto sorted = in_order(samples);
  const auto n = static_cast<int>(sorted.size());
  if (n == 0) {
    const double missing = std::numeric_limits<double>::quiet_NaN();
    return {missing, missing, missing, 0};
  }
  const auto k = static_cast<std::size_t>(std::max(1, interval_rank(n)));
  return {.median = quantile_of_sorted(sorted, 0.5),
          .low = sorted[k - 1],
          .high = sorted[sorted.size() - k],
          .n = n};
}

double mean(std::span<const double> samples) {
  if (samples.empty()) return std::numeric_limits<double>::quiet_NaN();
  return std::accumulate(samples.begin(), samples.end(), 0.0) / static_cast<double>(samples.size());
}

double standard_deviation(std::span<const double> samples) {
  if (samples.size() < 2) return 0;
  const double centre = mean(samples);
  double sum = 0;
  for (const double x : samples) sum += (x - centre) * (x - centre);
  return std::sqrt(sum / static_cast<double>(samples.size() - 1));
}

double accuracy_standard_error(std::span<const double> accuracies, long samples) {
  base::expects(!accuracies.empty() && samples > 0, "!accuracies.empty() && samples > 0");
  const double p = mean(accuracies);
  const double spread = standard_deviation(accuracies);
  return std::sqrt(p * (1 - p) / static_cast<double>(samples) +
                   spread * spread / static_cast<double>(accuracies.size()));
}

double student_quantile(double probability, double degrees) {
  base::expects(0.5 <= probability && probability < 1 && degrees >= 1,
                "0.5 <= probability < 1, degrees >= 1");
  // With t = sqrt(degrees) tan(angle) the density is c cos(angle)^(degrees - 1), which is smooth and ends:
  // Simpson's rule has more digits than anybody reads. So many degrees are a normal distribution.
  degrees = std::min(degrees, 1e6);
  int sign = 0;  // of std::lgamma, which would keep it in a global variable
  const double log_scale = ::lgamma_r((degrees + 1) / 2, &sign) - ::lgamma_r(degrees / 2, &sign) -
                           0.5 * std::log(std::numbers::pi);
  const auto below = [&](double value) {
    constexpr int kIntervals = 60;
    const double angle = std::atan(value / std::sqrt(degrees));
    double sum = 0;
    for (int i = 0; i <= kIntervals; ++i) {
      const double weight = i == 0 || i == kIntervals ? 1 : i % 2 == 1 ? 4 : 2;
      sum += weight * std::exp(log_scale + (degrees - 1) * std::log(std::cos(angle * i / kIntervals)));
    }
    return 0.5 + sum * angle / kIntervals / 3;
  };
  double low = 0, high = 1;
  while (below(high) < probability) high *= 2;
  for (int halving = 0; halving < 30; ++halving) {
    const double middle = (low + high) / 2;
    (below(middle) < probability ? low : high) = middle;
  }
  return (low + high) / 2;
}

double as_rare_as_two_errors(double degrees) {
  constexpr double kBelowTwoErrors = 0.977249868051821;  // of a normal distribution
  return std::isinf(degrees) ? 2 : student_quantile(kBelowTwoErrors, degrees);
}

std::optional<ValidationFigure> best_validated(const Record& record, std::int64_t epochs) {
  std::optional<ValidationFigure> best;
  for (const auto& epoch : record.epochs) {
    if (epoch.epoch > epochs || !epoch.validation_accuracy || !epoch.validation_loss) continue;
    const ValidationFigure figure{.accuracy = *epoch.validation_accuracy,
                                  .loss = *epoch.validation_loss,
                                  .epoch = epoch.epoch,
                                  .updates = epoch.updates};
    if (!best || is_better_figure(figure, *best)) best = figure;
  }
  return best;
}

std::vector<Candidate> candidates(std::span<const Record* const> records, std::int64_t epochs) {
  std::vector<Candidate> found;
  for (const Record* record : records) {
    auto place = std::find_if(found.begin(), found.end(),
                              [&](const Candidate& one) { return one.name == record->variant; });
    if (place == found.end()) {
      found.emplace_back().name = record->variant;
      place = found.end() - 1;
    }
    take(*place, *record);
  }
  std::int64_t longest = 0;
  for (auto& candidate : found) {
    finish(candidate, epochs);
    if (candidate.reached != kItsEnd) longest = std::max(longest, candidate.reached);
  }
  for (auto& candidate : found)
    if (candidate.reached == kItsEnd) candidate.reached = longest;
  return found;
}

void rank(std::vector<Candidate>& candidates) {
  std::ranges::stable_sort(candidates, [](const Candidate& a, const Candidate& b) {
    if (a.failure.empty() != b.failure.empty()) return a.failure.empty();
    if (a.reached != b.reached) return a.reached > b.reached;
    return a.accuracy != b.accuracy ? a.accuracy > b.accuracy : a.loss < b.loss;
  });
}

bool ties_with(const Candidate& best, const Candidate& other, std::int64_t samples) {
  const auto error = [&](const Candidate& one) {
    return accuracy_standard_error(one.accuracies, static_cast<long>(samples));
  };
  return best.accuracy - other.accuracy <= std::hypot(error(best), error(other));
}

const Record& best_record(const Candidate& candidate) {
  const Record* best = candidate.records.front();
  for (const Record* record : candidate.records)
    if (is_better_figure(*best_validated(*record), *best_validated(*best))) best = record;
  return *best;
}

}  // namespace paceline::measure
