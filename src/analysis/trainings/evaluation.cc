#include "analysis/trainings/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace paceline::analysis {
namespace {

using measure::EvaluationRecord;

/// A contradiction between the counts of one evaluation; "" if there is none.
std::string contradiction_in(const EvaluationRecord& record) {
  const std::size_t classes = record.classes.size();
  if (record.samples <= 0) return "no image was evaluated";
  if (record.confusion.size() != classes ||
      std::any_of(record.confusion.begin(), record.confusion.end(),
                  [&](const auto& row) { return row.size() != classes; }))
    return fmt::format("the confusion matrix is not {0} x {0}, as many as there are classes", classes);
  std::int64_t sum = 0, diagonal = 0;
  for (std::size_t i = 0; i < classes; ++i)
    for (std::size_t k = 0; k < classes; ++k) {
      if (record.confusion[i][k] < 0) return "the confusion matrix has a negative count";
      sum += record.confusion[i][k];
      diagonal += i == k ? record.confusion[i][k] : 0;
    }
  if (sum != record.samples)
    return fmt::format("the confusion matrix sums to {}, and {} images were evaluated", sum, record.samples);
  if (diagonal != record.correct)
    return fmt::format("the confusion matrix has {} correct images, and {} were counted", diagonal,
                       record.correct);
  if (record.correct_in_5 < record.correct || record.correct_in_5 > record.samples)
    return fmt::format("{} of {} images are correct within five and {} alone", record.correct_in_5,
                       record.samples, record.correct);
  return "";
}

std::optional<Proportion> proportion_of(std::int64_t hits, std::int64_t of) {
  return of > 0 ? std::optional(wilson(hits, of)) : std::nullopt;
}

}  // namespace

Proportion wilson(std::int64_t hits, std::int64_t of) {
  constexpr double z = 1.959963984540054;  // 97.5 % of the normal distribution
  const auto n = static_cast<double>(of);
  const double p = static_cast<double>(hits) / n;
  const double denominator = 1 + z * z / n;
  const double centre = (p + z * z / (2 * n)) / denominator;
  const double half = z * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / denominator;
  // If all or none are right, one end is exactly 1 or 0; this removes its rounding error.
  return {.value = p,
          .low = hits == 0 ? 0 : std::max(0.0, centre - half),
          .high = hits == of ? 1 : std::min(1.0, centre + half)};
}

Evaluation evaluation(const EvaluationRecord& record) {
  Evaluation result{.record = &record,
                    .top_1 = {},
                    .top_5 = {},
                    .classes = {},
                    .confusions = {},
                    .contradiction = contradiction_in(record)};
  if (!result.contradiction.empty()) return result;
  result.top_1 = wilson(record.correct, record.samples);
  result.top_5 = wilson(record.correct_in_5, record.samples);
  for (std::size_t i = 0; i < record.classes.size(); ++i) {
    ClassFigures figures{.name = record.classes[i], .recall = {}, .precision = {}};
    figures.correct = record.confusion[i][i];
    for (std::size_t k = 0; k < record.classes.size(); ++k) {
      figures.samples += record.confusion[i][k];
      figures.predicted += record.confusion[k][i];
      if (i != k && record.confusion[i][k] > 0)
        result.confusions.push_back({.label = i, .predicted = k, .samples = record.confusion[i][k]});
    }
    figures.recall = proportion_of(figures.correct, figures.samples);
    figures.precision = proportion_of(figures.correct, figures.predicted);
    result.classes.push_back(std::move(figures));
  }
  std::stable_sort(result.confusions.begin(), result.confusions.end(),
                   [](const Confusion& a, const Confusion& b) { return a.samples > b.samples; });
  return result;
}

}  // namespace paceline::analysis
