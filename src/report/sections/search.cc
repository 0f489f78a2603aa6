#include "analysis/trainings/search.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "analysis/trainings/evaluation.h"
#include "measure/statistics.h"
#include "report/sections/parts.h"
#include "report/sections/sections.h"
#include "report/text.h"

namespace paceline::report {
namespace {

using analysis::SearchResult;
using analysis::SearchTrial;

constexpr const char* kSearchDefinition =
    "Validation accuracy: of each training's best epoch, mean over seeds; where accuracies are equal, the "
    "lower loss is better. Interval: one standard error to either side, which joins the counting error of "
    "the validation part with the spread over seeds. To the best: the difference at equal epochs; below its "
    "standard error it is noise, and the two tie. Training: seconds of all seeds, without evaluation.";

/// Like Difference::word, but with the error of the validation part instead of the test set.
std::string word_of_difference(const analysis::Difference& difference) {
  if (difference.is_clear() && difference.one_seed) return "beyond the validation part's error; one seed";
  return difference.word();
}

std::string verdict_of_trial(const SearchResult& result, const SearchTrial& trial) {
  if (trial.has_failed()) return "failed";
  if (&trial == &result.trials.front()) return "chosen";
  const std::string word = trial.ties() ? "ties" : trial.to_best ? word_of_difference(*trial.to_best) : "-";
  return trial.dropped ? word + ", dropped" : word;
}

TableCell accuracy_of(const SearchTrial& trial) {
  if (trial.candidate.accuracies.empty()) return missing(trial.candidate.failure);
  return {.value = trial.candidate.accuracy,
          .low = trial.candidate.accuracy - trial.standard_error,
          .high = trial.candidate.accuracy + trial.standard_error,
          .note = "interval: one standard error to either side"};
}

TableCell difference_of(const SearchResult& result, const SearchTrial& trial) {
  if (trial.has_failed()) return missing(trial.candidate.failure);
  if (!trial.to_best)
    return missing(&trial == &result.trials.front() ? "is the best"
                                                    : "the best has no figure at as many epochs");
  const auto& difference = *trial.to_best;
  return {.value = 100 * difference.value,
          .low = 100 * (difference.value - difference.standard_error),
          .high = 100 * (difference.value + difference.standard_error)};
}

Table trials_table(const SearchResult& result) {
  Table table{
      .id = "search",
      .title = "Configurations, the best on validation first",
      .definition = kSearchDefinition,
      .columns = {{.key = "configuration", .label = "configuration"},
                  {.key = "epochs", .label = "epochs", .format = Format::integer},
                  {.key = "seeds", .label = "seeds", .format = Format::integer},
                  {.key = "accuracy", .label = "validation accuracy", .format = Format::percent1},
                  {.key = "loss", .label = "loss", .format = Format::fixed3},
                  {.key = "to_best", .label = "to the best", .unit = "points", .format = Format::fixed2},
                  {.key = "verdict", .label = "verdict"},
                  {.key = "training", .label = "training", .unit = "s", .format = Format::seconds}}};
  Footnotes footnotes;
  for (const auto& trial : result.trials) {
    table.rows.push_back(
        {words(trial.candidate.name), value(static_cast<double>(trial.epochs)),
         value(static_cast<double>(trial.candidate.records.size())), accuracy_of(trial),
         trial.candidate.accuracies.empty() ? missing(trial.candidate.failure) : value(trial.candidate.loss),
         difference_of(result, trial), words(verdict_of_trial(result, trial)), value(trial.training_s)});
    if (trial.has_failed())
      footnotes.add(fmt::format("{} failed: {}.", trial.candidate.name, trial.candidate.failure));
  }
  if (result.seeds == 1)
    footnotes.add(
        "One seed: the spread over seeds is not known, the standard error is the validation part's.");
  table.footnotes = footnotes.take();
  return table;
}

Plot curves(const SearchResult& result) {
  Plot plot{.id = "search-epochs",
            .title = "Validation accuracy over epochs",
            .caption = "Means over seeds. A curve ends where its configuration was dropped.",
            .x = {.label = "epoch"},
            .y = {.label = "validation accuracy", .unit = "%"}};
  for (const auto& trial : result.trials) {
    std::map<std::int64_t, std::vector<double>> by_epoch;
    for (const auto* record : trial.candidate.records)
      for (const auto& epoch : record->epochs)
        if (epoch.validation_accuracy) by_epoch[epoch.epoch].push_back(*epoch.validation_accuracy);
    Series series{.name = trial.candidate.name};
    for (const auto& [epoch, accuracies] : by_epoch)
      series.points.push_back({.x = static_cast<double>(epoch), .y = 100 * measure::mean(accuracies)});
    if (!series.points.empty()) plot.series.push_back(std::move(series));
  }
  return plot;
}

/// "on the test set, which was read once, its checkpoint ... has an accuracy of 97.2 % [96.8, 97.5]"
std::string said_of_test(const SearchResult& result) {
  if (result.tested == nullptr || result.tested->variant != result.best->variant)
    return "the test set was not read yet";
  const auto& evaluation = *result.tested->evaluation;
  const auto figures = analysis::evaluation(evaluation);
  if (!figures.contradiction.empty()) return "its evaluation contradicts itself: " + figures.contradiction;
  const double times = static_cast<double>(evaluation.reads) / static_cast<double>(evaluation.samples);
  return fmt::format(
      "on the test set, which was read {}, its checkpoint after {} updates has an accuracy of {} "
      "[{:.1f}, {:.1f}]",
      times == 1 ? "once" : amount(times) + " times", evaluation.updates, percent(figures.top_1.value),
      100 * figures.top_1.low, 100 * figures.top_1.high);
}

std::string answer(const SearchResult& result) {
  const auto& best = result.trials.front();
  std::vector<std::string> ties;
  for (const auto& trial : result.trials)
    if (trial.ties()) ties.push_back(trial.candidate.name);
  return fmt::format("{} is the best on validation: {} of {} images, standard error {:.2f} points; {}; {}.",
                     best.candidate.name, percent(best.candidate.accuracy),
                     integer(static_cast<double>(result.validation_samples)), 100 * best.standard_error,
                     ties.empty()
                         ? "nothing ties with it"
                         : fmt::format("the difference to {} is noise, they tie", fmt::join(ties, "; ")),
                     said_of_test(result));
}

/// What distinguishes one of several searches.
struct Told {
  std::string id;       ///< of its table
  std::string subject;  ///< "resnet8-cifar on cifar10: "; empty for the only one
};

void add_search(Section& section, const SearchResult& result, const Told& told) {
  if (result.stopped > 0)
    section.blocks.push_back(
        warning(fmt::format("{}PARTIAL: {} stopped or not begun; the same command goes on.", told.subject,
                            count(result.stopped, "training"))));
  section.blocks.push_back(
      result.best != nullptr
          ? finding(told.subject + answer(result))
          : warning(told.subject + "Every configuration failed: see the reasons below the table."));
  auto table = trials_table(result);
  table.id = told.id;
  table.title = told.subject + table.title;
  section.blocks.push_back(std::move(table));
  auto plot = curves(result);
  plot.id = told.id + "-epochs";
  plot.title = told.subject + plot.title;
  if (!plot.series.empty()) section.blocks.push_back(std::move(plot));
  if (result.epochs_trained < result.epochs_of_grid)
    section.blocks.push_back(plain(fmt::format(
        "{}{} epochs were trained in all; each configuration to the end of the longest would have been {}.",
        told.subject, integer(static_cast<double>(result.epochs_trained)),
        integer(static_cast<double>(result.epochs_of_grid)))));
}

}  // namespace

bool is_of_search(const measure::Record& record) { return record.kind == "search"; }

std::optional<Section> search_section(const Conclusions& conclusions) {
  const auto results = analysis::searches(conclusions.records);
  if (results.empty()) return std::nullopt;
  Section section{.id = "search", .title = "Which configuration?"};
  for (std::size_t i = 0; i < results.size(); ++i)
    add_search(section, results[i],
               {.id = i == 0 ? "search" : fmt::format("search-{}", i + 1),
                .subject = results.size() == 1 ? "" : results[i].subject + ": "});
  return section;
}

}  // namespace paceline::report
