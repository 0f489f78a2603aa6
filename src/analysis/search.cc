#include "analysis/search.h"

#include <algorithm>

#include "measure/statistics.h"

namespace paceline::analysis {
namespace {

using measure::Candidate;
using measure::Record;

/// Trainings of the search that came to something; `stopped` counts the others.
std::vector<const Record*> begun(std::span<const Record> records, long& stopped) {
  std::vector<const Record*> found;
  for (const Record& record : records) {
    if (record.kind != "search") continue;
    stopped += record.status == "interrupted" ? 1 : 0;
    if (!record.epochs.empty() || record.status != "interrupted") found.push_back(&record);
  }
  return found;
}

double error_of(const std::vector<double>& accuracies, std::int64_t samples) {
  return measure::accuracy_standard_error(accuracies, static_cast<long>(samples));
}

/// `trial` against the best as both were after the epochs of `trial`.
std::optional<Difference> to_best(const SearchTrial& trial, const SearchTrial& best,
                                  std::span<const Record* const> records, std::int64_t samples) {
  const auto then = measure::candidates(records, trial.epochs);
  const auto found = std::find_if(then.begin(), then.end(),
                                  [&](const Candidate& one) { return one.name == best.candidate.name; });
  if (found == then.end() || !found->failure.empty()) return std::nullopt;
  auto result = difference(found->accuracy, error_of(found->accuracies, samples), trial.candidate.accuracy,
                           trial.standard_error);
  result.one_seed = found->accuracies.size() == 1 || trial.candidate.accuracies.size() == 1;
  return result;
}

}  // namespace

std::optional<SearchResult> search(std::span<const Record> all) {
  SearchResult result;
  for (const Record& record : all)
    if (record.evaluation && !record.variant.empty()) result.tested = &record;
  const auto trainings = begun(all, result.stopped);
  if (trainings.empty()) return std::nullopt;
  auto ranked = measure::candidates(trainings);
  measure::rank(ranked);
  std::int64_t longest = 0;
  for (auto& candidate : ranked) {
    SearchTrial trial{.candidate = std::move(candidate), .to_best = {}};
    for (const Record* record : trial.candidate.records) {
      for (const auto& epoch : record->epochs) trial.training_s += epoch.seconds;
      const auto epochs = record->epochs.empty() ? 0 : record->epochs.back().epoch;
      trial.epochs = std::max(trial.epochs, epochs);
      result.epochs_trained += epochs;
      result.validation_samples =
          std::max(result.validation_samples, record->data.validation_samples.value_or(0));
    }
    longest = std::max(longest, trial.epochs);
    result.seeds = std::max(result.seeds, static_cast<int>(trial.candidate.records.size()));
    result.trials.push_back(std::move(trial));
  }
  for (auto& trial : result.trials) {
    result.epochs_of_grid += longest * static_cast<std::int64_t>(trial.candidate.records.size());
    if (!trial.candidate.accuracies.empty())
      trial.standard_error = error_of(trial.candidate.accuracies, result.validation_samples);
  }
  auto& best = result.trials.front();
  if (best.has_failed()) return result;
  result.best = &measure::best_record(best.candidate);
  for (auto& trial : result.trials) {
    trial.dropped = !trial.has_failed() && trial.candidate.reached < best.candidate.reached;
    if (&trial != &best && !trial.has_failed())
      trial.to_best = to_best(trial, best, trainings, result.validation_samples);
  }
  return result;
}

}  // namespace paceline::analysis
