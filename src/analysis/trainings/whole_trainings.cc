#include "analysis/trainings/whole_trainings.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "analysis/compare/cell.h"
#include "base/error.h"
#include "measure/statistics.h"

namespace paceline::analysis {
namespace {

using measure::EpochRecord;
using measure::Record;

/// The mean of a figure over the seeds; nullopt if a seed lacks it.
template <typename Figure>
std::optional<double> mean_of(const std::vector<const EpochRecord*>& seeds, Figure EpochRecord::*member) {
  double sum = 0;
  for (const EpochRecord* epoch : seeds) {
    const std::optional<double> figure = epoch->*member;
    if (!figure || !std::isfinite(*figure)) return std::nullopt;
    sum += *figure;
  }
  return sum / static_cast<double>(seeds.size());
}

std::vector<CourseEpoch> epochs_of(std::span<const Record* const> seeds) {
  std::map<std::int64_t, std::vector<const EpochRecord*>> by_updates;
  for (const Record* record : seeds)
    for (const EpochRecord& epoch : record->epochs) by_updates[epoch.updates].push_back(&epoch);
  std::vector<CourseEpoch> epochs;
  for (const auto& [updates, of_seeds] : by_updates) {
    if (of_seeds.size() != seeds.size()) continue;
    const auto mean = [&of_seeds = of_seeds](auto member) { return mean_of(of_seeds, member); };
    epochs.push_back({.updates = updates,
                      .epochs = epochs_done(*seeds.front(), *of_seeds.front()),
                      .train_loss = mean(&EpochRecord::train_loss).value_or(std::nan("")),
                      .train_accuracy = mean(&EpochRecord::train_accuracy).value_or(std::nan("")),
                      .test_loss = mean(&EpochRecord::test_loss),
                      .test_accuracy = mean(&EpochRecord::test_accuracy),
                      .validation_loss = mean(&EpochRecord::validation_loss),
                      .validation_accuracy = mean(&EpochRecord::validation_accuracy)});
  }
  return epochs;
}

std::optional<double> held_out_loss(const Course& course, const CourseEpoch& epoch) {
  return course.has_validation ? epoch.validation_loss : epoch.test_loss;
}
std::optional<double> held_out_accuracy(const Course& course, const CourseEpoch& epoch) {
  return course.has_validation ? epoch.validation_accuracy : epoch.test_accuracy;
}

std::optional<Overfitting> find_overfitting(const Course& course) {
  std::vector<const CourseEpoch*> judged;
  for (const CourseEpoch& epoch : course.epochs)
    if (held_out_loss(course, epoch)) judged.push_back(&epoch);
  if (judged.size() <= static_cast<std::size_t>(kFewestEpochsAfter)) return std::nullopt;
  const auto lowest = std::ranges::min_element(
      judged, {}, [&](const CourseEpoch* epoch) { return *held_out_loss(course, *epoch); });
  if (judged.end() - lowest <= kFewestEpochsAfter) return std::nullopt;
  const CourseEpoch &then = **lowest, &last = *judged.back();
  const double least = *held_out_loss(course, then);
  const auto is_above = [&](const CourseEpoch& epoch) {
    return *held_out_loss(course, epoch) > least * (1 + kClearRise);
  };
  // The last epoch and the one before: a single bad epoch does not count.
  if (!is_above(last) || !is_above(**(judged.end() - 2)) || !(last.train_loss < then.train_loss))
    return std::nullopt;
  return Overfitting{.from_epoch = (*(lowest + 1))->epochs,
                     .lowest_loss = least,
                     .last_loss = *held_out_loss(course, last),
                     .train_loss_then = then.train_loss,
                     .train_loss_at_end = last.train_loss,
                     .accuracy_then = held_out_accuracy(course, then),
                     .accuracy_at_end = held_out_accuracy(course, last)};
}

/// Of one training.
std::optional<double> mean_change(const Record& record, bool of_validation, int most, int& over) {
  std::vector<double> accuracies;
  for (const EpochRecord& epoch : record.epochs)
    if (const auto& one = of_validation ? epoch.validation_accuracy : epoch.test_accuracy)
      accuracies.push_back(*one);
  const int changes = std::min(most, static_cast<int>(accuracies.size()) - 1);
  if (changes < 2) return std::nullopt;
  double sum = 0;
  for (std::size_t i = accuracies.size() - static_cast<std::size_t>(changes); i < accuracies.size(); ++i)
    sum += std::abs(accuracies[i] - accuracies[i - 1]);
  over = changes;
  return sum / changes;
}

void find_unsteadiness(Course& course, std::span<const Record* const> seeds) {
  constexpr int kMost = 5;
  double sum = 0;
  int over = kMost;
  for (const Record* record : seeds) {
    int own = 0;
    const auto change = mean_change(*record, course.has_validation, kMost, own);
    if (!change) return;
    sum += *change;
    over = std::min(over, own);
  }
  course.unsteadiness = sum / static_cast<double>(seeds.size());
  course.steady_over = over;
}

/// Selects an accuracy of an epoch: on the test set or on the validation part.
using Part = std::optional<double> measure::EpochRecord::*;

/// nullopt if no epoch has one, as when the test set is read only once, at the end.
std::optional<double> best_accuracy(const Record& record, Part part) {
  std::optional<double> best;
  for (const auto& epoch : record.epochs)
    if (const auto& accuracy = epoch.*part) best = std::max(best.value_or(*accuracy), *accuracy);
  return best;
}

/// The best accuracy of the seed whose best is lowest; nullopt if a seed has no accuracies by epoch.
std::optional<double> reached_by_all(const Variant& variant, Part part) {
  std::optional<double> lowest;
  for (const Record* record : variant.records) {
    const auto best = best_accuracy(*record, part);
    if (!best) return std::nullopt;
    lowest = std::min(lowest.value_or(*best), *best);
  }
  return lowest;
}

std::optional<double> seconds_to(const Record& record, double accuracy, Part part) {
  const auto ends = seconds_to_epochs(record);
  for (std::size_t i = 0; i < ends.size(); ++i)
    if (const auto& one = record.epochs[i].*part; one && *one >= accuracy) return ends[i];
  return std::nullopt;
}

/// The largest number of epochs between two evaluations.
std::int64_t looked_every(const Record& record, Part part) {
  std::int64_t most = 0, last = 0;
  for (const auto& epoch : record.epochs) {
    if (!(epoch.*part)) continue;
    most = std::max(most, epoch.epoch - last);
    last = epoch.epoch;
  }
  return most;
}

Estimate estimate_of(const std::vector<double>& samples) {
  return samples.empty() ? Estimate{} : measure::estimate(samples);
}

WholeTraining times_of(const Convergence& convergence, std::size_t at, std::optional<double> accuracy,
                       Part part) {
  const Variant& variant = convergence.variants[at];
  WholeTraining training{.variant = at};
  std::vector<std::vector<double>> epochs;
  std::vector<double> totals, reached;
  for (const Record* record : variant.records) {
    if (auto seconds = epoch_seconds(*record); !seconds.empty()) epochs.push_back(std::move(seconds));
    if (const auto ends = seconds_to_epochs(*record); !ends.empty()) totals.push_back(ends.back());
    if (!accuracy) continue;
    training.looked_every = std::max(training.looked_every, looked_every(*record, part));
    if (const auto seconds = seconds_to(*record, *accuracy, part)) reached.push_back(*seconds);
  }
  if (!epochs.empty()) training.epoch_s = pooled(epochs);
  if (totals.size() == variant.records.size()) training.total_s = estimate_of(totals);
  if (reached.size() == variant.records.size()) training.to_accuracy_s = estimate_of(reached);
  return training;
}

/// Numbers of epochs are quotients, since updates need not fill whole epochs.
bool are_as_many(double epochs, double others) { return std::abs(epochs - others) < 1e-6; }

/// The highest accuracy that all of `chosen` reached, except those that end clearly below the baseline, which
/// may never get there. nullopt if any variant lacks accuracies by epoch.
std::optional<double> common_accuracy(const std::vector<Variant>& variants, const Variant& baseline,
                                      const std::vector<std::size_t>& chosen, Part part) {
  std::optional<double> common;
  for (const std::size_t i : chosen) {
    const auto reached = reached_by_all(variants[i], part);
    if (!reached) return std::nullopt;
    const Difference apart = difference(baseline, variants[i]);
    if (apart.value < 0 && apart.is_clear()) continue;
    common = std::min(common.value_or(*reached), *reached);
  }
  return common;
}

/// The baseline's time divided by the other's; nullopt if one is unknown.
std::optional<Estimate> speedup(const Estimate& baseline, const Estimate& other) {
  if (baseline.n == 0 || other.n == 0 || !(other.median > 0)) return std::nullopt;
  return ratio(baseline, other);
}

std::size_t baseline_among(const Convergence& convergence) {
  const auto& variants = convergence.variants;
  std::size_t found = convergence.baseline.value_or(0);
  for (std::size_t i = 0; i < variants.size(); ++i)
    if (variants[i].cell->workers < variants[found].cell->workers) found = i;
  return found;
}

}  // namespace

Course course(std::span<const Record* const> seeds) {
  base::expects(!seeds.empty(), "a course is of trainings");
  Course result;
  result.epochs = epochs_of(seeds);
  if (result.epochs.empty()) return result;
  result.has_validation = result.epochs.back().validation_accuracy.has_value();
  result.overfitting = find_overfitting(result);
  const CourseEpoch& last = result.epochs.back();
  if (const auto held_out = held_out_accuracy(result, last)) result.gap = last.train_accuracy - *held_out;
  find_unsteadiness(result, seeds);
  return result;
}

std::optional<WholeTrainings> whole_trainings(const Convergence& convergence) {
  const auto& variants = convergence.variants;
  if (variants.empty()) return std::nullopt;
  const std::size_t baseline = baseline_among(convergence);
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
  Part part = &measure::EpochRecord::test_accuracy;
  result.common_accuracy = common_accuracy(variants, variants[baseline], chosen, part);
  if (!result.common_accuracy) {
    const Part validation = &measure::EpochRecord::validation_accuracy;
    result.common_accuracy = common_accuracy(variants, variants[baseline], chosen, validation);
    result.of_validation = result.common_accuracy.has_value();
    if (result.of_validation) part = validation;
  }
  for (const std::size_t i : chosen)
    result.trainings.push_back(times_of(convergence, i, result.common_accuracy, part));
  const WholeTraining first = result.trainings[result.baseline];
  for (std::size_t i = 0; i < chosen.size(); ++i) {
    if (i == result.baseline) continue;
    WholeTraining& training = result.trainings[i];
    training.times = compare(*variants[baseline].record, *variants[chosen[i]].record, Topic::scaling);
    training.as_many_epochs = are_as_many(variants[baseline].epochs, variants[chosen[i]].epochs);
    if (!training.times.comparable()) continue;
    training.epoch_speedup = speedup(first.epoch_s, training.epoch_s);
    if (training.as_many_epochs) training.total_speedup = speedup(first.total_s, training.total_s);
    training.to_accuracy_speedup = speedup(first.to_accuracy_s, training.to_accuracy_s);
    const double fewer =
        static_cast<double>(variants[baseline].cell->workers) / variants[chosen[i]].cell->workers;
    if (training.epoch_speedup) training.epoch_efficiency = scaled(*training.epoch_speedup, fewer);
    if (training.total_speedup) training.total_efficiency = scaled(*training.total_speedup, fewer);
  }
  return result;
}

}  // namespace paceline::analysis
