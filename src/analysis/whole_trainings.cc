#include "analysis/whole_trainings.h"

#include <algorithm>
#include <set>

#include "analysis/record_times.h"
#include "measure/statistics.h"

namespace paceline::analysis {
namespace {

using measure::Record;

double best_accuracy(const Record& record) {
  double best = 0;
  for (const auto& epoch : record.epochs) best = std::max(best, epoch.test_accuracy.value_or(0));
  return best;
}

std::optional<double> seconds_to(const Record& record, double accuracy) {
  const auto ends = seconds_to_epochs(record);
  for (std::size_t i = 0; i < ends.size(); ++i)
    if (record.epochs[i].test_accuracy.value_or(-1) >= accuracy) return ends[i];
  return std::nullopt;
}

Estimate estimate_of(const std::vector<double>& samples) {
  return samples.empty() ? Estimate{} : measure::estimate(samples);
}

WholeTraining times_of(const Convergence& convergence, std::size_t at, std::optional<double> accuracy) {
  const Variant& variant = convergence.variants[at];
  WholeTraining training{.variant = at};
  std::vector<std::vector<double>> epochs;
  std::vector<double> totals, reached;
  for (const Record* record : variant.records) {
    if (auto seconds = epoch_seconds(*record); !seconds.empty()) epochs.push_back(std::move(seconds));
    if (const auto ends = seconds_to_epochs(*record); !ends.empty()) totals.push_back(ends.back());
    if (!accuracy) continue;
    if (const auto seconds = seconds_to(*record, *accuracy)) reached.push_back(*seconds);
  }
  if (!epochs.empty()) training.epoch_s = pooled(epochs);
  if (totals.size() == variant.records.size()) training.total_s = estimate_of(totals);
  if (reached.size() == variant.records.size()) training.to_accuracy_s = estimate_of(reached);
  return training;
}

/// The baseline's time over the other's, where both are known.
std::optional<Estimate> speedup(const Estimate& baseline, const Estimate& other) {
  if (baseline.n == 0 || other.n == 0 || !(other.median > 0)) return std::nullopt;
  return ratio(baseline, other);
}

std::size_t baseline_of(const Convergence& convergence) {
  const auto& variants = convergence.variants;
  std::size_t found = convergence.baseline.value_or(0);
  for (std::size_t i = 0; i < variants.size(); ++i)
    if (variants[i].cell->workers < variants[found].cell->workers) found = i;
  return found;
}

}  // namespace

std::optional<WholeTrainings> whole_trainings(const Convergence& convergence) {
  const auto& variants = convergence.variants;
  if (variants.empty()) return std::nullopt;
  const std::size_t baseline = baseline_of(convergence);
  WholeTrainings result;
  std::vector<std::size_t> chosen;
  std::set<int> workers;
  for (std::size_t i = 0; i < variants.size(); ++i) {
    const auto verdict = compare(*variants[baseline].record, *variants[i].record, Topic::time_to_accuracy);
    if (i != baseline && !verdict.comparable()) continue;
    chosen.push_back(i);
    workers.insert(variants[i].cell->workers);
    if (i == baseline) result.baseline = chosen.size() - 1;
  }
  if (workers.size() < 2) return std::nullopt;
  for (const std::size_t i : chosen) {
    const Difference apart = difference(variants[baseline], variants[i]);
    if (apart.value < 0 && apart.is_clear()) continue;  // it may never come as far
    for (const Record* record : variants[i].records)
      result.common_accuracy = std::min(result.common_accuracy.value_or(1), best_accuracy(*record));
  }
  for (const std::size_t i : chosen)
    result.trainings.push_back(times_of(convergence, i, result.common_accuracy));
  const WholeTraining first = result.trainings[result.baseline];
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (i == result.baseline) continue;
    WholeTraining& training = result.trainings[i];
    training.epoch_speedup = speedup(first.epoch_s, training.epoch_s);
    training.total_speedup = speedup(first.total_s, training.total_s);
    training.to_accuracy_speedup = speedup(first.to_accuracy_s, training.to_accuracy_s);
    const double fewer =
        static_cast<double>(variants[baseline].cell->workers) / variants[chosen[i]].cell->workers;
    if (training.epoch_speedup) training.epoch_efficiency = scaled(*training.epoch_speedup, fewer);
    if (training.total_speedup) training.total_efficiency = scaled(*training.total_speedup, fewer);
  }
  return result;
}

}  // namespace paceline::analysis
