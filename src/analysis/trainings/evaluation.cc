#include "analysis/trainings/evaluation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <utility>

#include "base/text.h"

namespace paceline::analysis {
namespace {

using measure::Candidate;
using measure::Record;

/// Whether the configuration's name, "model mnist-cnn, lr 0.1", names the model: then the search varies it.
bool varies_model(const Record& record) {
  return record.variant.starts_with("model ") || record.variant.find(", model ") != std::string::npos;
}

/// Whether the records have the same model. A training that failed before its network was made may not know
/// the number of parameters.
bool has_model_of(const Record& a, const Record& b) {
  return a.model.name == b.model.name &&
         (a.model.parameters == b.model.parameters || a.model.parameters == 0 || b.model.parameters == 0);
}

bool is_of_one_search(const Record& a, const Record& b) {
  if (a.data.name != b.data.name || a.data.spec != b.data.spec) return false;
  if (varies_model(a) != varies_model(b)) return false;
  return varies_model(a) || has_model_of(a, b);
}

std::vector<std::vector<const Record*>> groups(std::span<const Record> records) {
  std::vector<std::vector<const Record*>> found;
  for (const Record& record : records) {
    if (record.kind != "search") continue;
    const auto place = std::ranges::find_if(
        found, [&](const auto& group) { return is_of_one_search(*group.front(), record); });
    (place == found.end() ? found.emplace_back() : *place).push_back(&record);
  }
  return found;
}

/// The trainings that produced figures; `stopped` counts the others.
std::vector<const Record*> begun(const std::vector<const Record*>& group, long& stopped) {
  std::vector<const Record*> found;
  for (const Record* record : group) {
    stopped += record->status == "interrupted" ? 1 : 0;
    if (!record->epochs.empty() || record->status != "interrupted") found.push_back(record);
  }
  return found;
}

std::string subject_of_search(const Record& record) {
  const std::string data = measure::name_of_data(record);
  return varies_model(record) ? data : data.empty() ? record.model.name : record.model.name + " on " + data;
}

double error_of(const std::vector<double>& accuracies, std::int64_t samples) {
  return measure::accuracy_standard_error(accuracies, static_cast<long>(samples));
}

/// Compares `trial` with the best, both after as many epochs as `trial` has.
std::optional<Difference> to_best(const SearchTrial& trial, const SearchTrial& best,
                                  std::span<const Record* const> records, std::int64_t samples) {
  const auto then = measure::candidates(records, trial.epochs);
  const auto found =
      std::ranges::find_if(then, [&](const Candidate& one) { return one.name == best.candidate.name; });
  if (found == then.end() || !found->failure.empty()) return std::nullopt;
  auto result = difference(found->accuracy, error_of(found->accuracies, samples), trial.candidate.accuracy,
                           trial.standard_error);
  result.one_seed = found->accuracies.size() == 1 || trial.candidate.accuracies.size() == 1;
  return result;
}

std::optional<double> gap_of(const Candidate& candidate) {
  std::vector<double> gaps;
  for (const Record* record : candidate.records) {
    const auto best = measure::best_validated(*record);
    for (const auto& epoch : record->epochs)
      if (best && epoch.epoch == best->epoch) gaps.push_back(epoch.train_accuracy - best->accuracy);
  }
  return gaps.empty() ? std::nullopt : std::optional(measure::mean(gaps));
}

/// The options in a configuration's name: "lr 0.1, local-batch 64".
using NamedValues = std::vector<std::pair<std::string, std::string>>;

NamedValues values_in(const std::string& name) {
  NamedValues values;
  for (std::size_t begin = 0; begin < name.size();) {
    const std::size_t end = std::min(name.find(", ", begin), name.size());
    const auto piece = name.substr(begin, end - begin);
    const auto blank = piece.find(' ');
    values.emplace_back(piece.substr(0, blank), blank == std::string::npos ? "" : piece.substr(blank + 1));
    begin = end + 2;
  }
  return values;
}

std::string taken(NamedValues& values, const std::string& option) {
  const auto found = std::ranges::find(values, option, &NamedValues::value_type::first);
  if (found == values.end()) return "";
  auto value = found->second;
  values.erase(found);
  return value;
}

std::string joined(const NamedValues& values) {
  return base::joined(values, ", ", [](const auto& one) { return one.first + " " + one.second; });
}

std::size_t place_of(const std::vector<std::string>& all, const std::string& one) {
  return static_cast<std::size_t>(std::ranges::find(all, one) - all.begin());
}

/// Numbers in their order; other values stay in that of the configurations.
void sort_numbers(std::vector<std::string>& values) {
  const auto number = [](const std::string& text) { return std::strtod(text.c_str(), nullptr); };
  const auto is_number = [](const std::string& text) {
    char* end = nullptr;
    (void)std::strtod(text.c_str(), &end);
    return !text.empty() && *end == '\0';
  };
  if (std::ranges::all_of(values, is_number)) std::ranges::stable_sort(values, {}, number);
}

std::optional<SearchResult> search(std::span<const Record> all, const std::vector<const Record*>& group) {
  SearchResult result{.subject = subject_of_search(*group.front()), .trials = {}};
  for (const Record& record : all)
    if (record.evaluation && !record.variant.empty() && is_of_one_search(*group.front(), record))
      result.tested = &record;
  const auto trainings = begun(group, result.stopped);
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
    trial.gap = gap_of(trial.candidate);
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

using measure::EvaluationRecord;

/// A contradiction between the counts of one evaluation; "" if there is none.
std::string contradiction_in(const EvaluationRecord& record) {
  const std::size_t classes = record.classes.size();
  if (record.samples <= 0) return "no image was evaluated";
  if (record.confusion.size() != classes ||
      std::ranges::any_of(record.confusion, [&](const auto& row) { return row.size() != classes; }))
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

std::vector<SearchResult> searches(std::span<const Record> records) {
  std::vector<SearchResult> found;
  for (const auto& group : groups(records))
    if (auto result = search(records, group)) found.push_back(std::move(*result));
  return found;
}

std::vector<SearchGrid> grids(const SearchResult& result) {
  if (result.trials.empty()) return {};
  auto options = values_in(result.trials.front().candidate.name);
  if (options.size() < 2) return {};
  std::ranges::stable_partition(options, [](const auto& one) { return one.first.ends_with("-batch"); });
  const std::string rows = options[0].first;
  std::ranges::stable_partition(options.begin() + 1, options.end(),
                                [](const auto& one) { return one.first == "lr"; });
  const std::string columns = options[1].first;
  std::vector<SearchGrid> found;
  for (const bool is_filled : {false, true})  // first the axes, then the cells
    for (const auto& trial : result.trials) {
      auto values = values_in(trial.candidate.name);
      const auto row = taken(values, rows), column = taken(values, columns), others = joined(values);
      auto grid = std::ranges::find(found, others, &SearchGrid::others);
      if (is_filled) {
        grid->trials.resize(grid->rows.size() * grid->columns.size());
        grid->trials[place_of(grid->rows, row) * grid->columns.size() + place_of(grid->columns, column)] =
            &trial;
        continue;
      }
      if (grid == found.end())
        grid = found.insert(
            found.end(),
            SearchGrid{
                .row_option = rows, .column_option = columns, .others = others, .rows = {}, .columns = {}});
      if (place_of(grid->rows, row) == grid->rows.size()) grid->rows.push_back(row);
      if (place_of(grid->columns, column) == grid->columns.size()) grid->columns.push_back(column);
      sort_numbers(grid->rows);
      sort_numbers(grid->columns);
    }
  return found;
}

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

Proportion mean_of_proportions(std::span<const Proportion> proportions) {
  double sum = 0, below = 0, above = 0;
  for (const auto& one : proportions) {
    sum += one.value;
    below += (one.value - one.low) * (one.value - one.low);
    above += (one.high - one.value) * (one.high - one.value);
  }
  const auto count = static_cast<double>(proportions.size());
  return {.value = sum / count,
          .low = (sum - std::sqrt(below)) / count,
          .high = (sum + std::sqrt(above)) / count};
}

Evaluation evaluation(const EvaluationRecord& record) {
  Evaluation result;
  result.record = &record;
  result.contradiction = contradiction_in(record);
  if (!result.contradiction.empty()) return result;
  result.top_1 = wilson(record.correct, record.samples);
  result.top_5 = wilson(record.correct_in_5, record.samples);
  std::vector<Proportion> recalls;
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
    if (figures.recall) recalls.push_back(*figures.recall);
    result.classes.push_back(std::move(figures));
  }
  result.balanced = mean_of_proportions(recalls);  // there are samples, as contradiction_in() knows
  std::ranges::stable_sort(result.confusions, std::ranges::greater{}, &Confusion::samples);
  return result;
}

}  // namespace paceline::analysis
