#include "analysis/trainings/course.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "analysis/compare/record_times.h"
#include "base/error.h"

namespace paceline::analysis {
namespace {

using measure::EpochRecord;
using measure::Record;

/// The mean of a figure over the seeds; nullopt if a seed lacks it.
template <typename Get>
std::optional<double> mean_of(const std::vector<const EpochRecord*>& seeds, Get get) {
  double sum = 0;
  for (const EpochRecord* epoch : seeds) {
    const std::optional<double> figure = get(*epoch);
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
    const auto mean = [&of_seeds = of_seeds](auto member) {
      return mean_of(of_seeds,
                     [&](const EpochRecord& epoch) { return std::optional<double>(epoch.*member); });
    };
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
  const auto lowest = std::min_element(judged.begin(), judged.end(), [&](const auto* a, const auto* b) {
    return *held_out_loss(course, *a) < *held_out_loss(course, *b);
  });
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

}  // namespace paceline::analysis
