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
    "standard error it is noise, and the two tie. Gap: training less validation accuracy at the best epoch. Training: seconds of all seeds, without evaluation.";

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
  return with_error(trial.candidate.accuracy, trial.standard_error);
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

/// What distinguishes one of several searches.
struct Told {
  std::string id;       ///< of its table
  std::string subject;  ///< "resnet8-cifar on cifar10: "; empty for the only one
};

Table trials_table(const SearchResult& result, const Told& told) {
  Table table{
      .id = told.id,
      .title = told.subject + "Configurations, the best on validation first",
      .definition = kSearchDefinition,
      .columns = {{.key = "configuration", .label = "configuration"},
                  {.key = "epochs", .label = "epochs", .format = Format::integer},
                  {.key = "seeds", .label = "seeds", .format = Format::integer},
                  {.key = "accuracy", .label = "validation accuracy", .format = Format::percent1},
                  {.key = "loss", .label = "loss", .format = Format::fixed3},
                  {.key = "gap", .label = "gap", .unit = "points", .format = Format::fixed2},
                  {.key = "to_best", .label = "to the best", .unit = "points", .format = Format::fixed2},
                  {.key = "verdict", .label = "verdict"},
                  {.key = "training", .label = "training", .unit = "s", .format = Format::seconds}}};
  Footnotes footnotes;
  for (const auto& trial : result.trials) {
    table.rows.push_back(
        {words(trial.candidate.name), value(trial.epochs), value(trial.candidate.records.size()),
         accuracy_of(trial),
         trial.candidate.accuracies.empty() ? missing(trial.candidate.failure) : value(trial.candidate.loss),
         trial.gap ? value(100 * *trial.gap) : missing("no accuracy of training at its best epoch"),
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

/// Validation accuracy by two options, such as batch and learning rate. The best is marked as such only if no
/// other ties with it.
Heatmap accuracy_map(const SearchResult& result, const analysis::SearchGrid& grid, const std::string& id) {
  const auto& best = result.trials.front();
  const bool is_alone = std::ranges::none_of(result.trials, [](const auto& trial) { return trial.ties(); });
  Heatmap map{.id = id,
              .finding = fmt::format("Validation accuracy by {} and {}{}", grid.row_option,
                                     grid.column_option, behind(grid.others)),
              .note = fmt::format(
                  "Of each training's best epoch, mean over seeds. {} dropped: halving ended it early, "
                  "and with more epochs it would be higher.",
                  is_alone ? "best: no other ties with it."
                           : "tie: the best, and those that cannot be told from it."),
              .row_label = grid.row_option,
              .column_label = grid.column_option,
              .value = {.key = "accuracy", .label = "validation accuracy", .format = Format::percent1},
              .rows = grid.rows,
              .columns = grid.columns};
  for (const SearchTrial* trial : grid.trials) {
    auto& cell = map.cells.emplace_back();
    if (trial == nullptr || trial->candidate.accuracies.empty()) {
      cell.note = trial == nullptr ? "not searched" : trial->candidate.failure;
      continue;
    }
    const bool is_best = trial == &best;
    cell.value = trial->candidate.accuracy;
    cell.mark = is_best && is_alone        ? "best"
                : is_best || trial->ties() ? "tie"
                : trial->dropped           ? "dropped"
                                           : "";
    cell.note = fmt::format("{}: {} ± {:.2f} points{}", trial->candidate.name,
                            percent(trial->candidate.accuracy), 100 * trial->standard_error,
                            trial->gap ? fmt::format(", gap {:.2f} points", 100 * *trial->gap) : "");
  }
  return map;
}

Plot curves(const SearchResult& result, const Told& told) {
  Plot plot{.id = told.id + "-epochs",
            .title = told.subject + "Validation accuracy over epochs",
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
std::string text_about_test(const SearchResult& result) {
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
                     integer(result.validation_samples), 100 * best.standard_error,
                     ties.empty()
                         ? "nothing ties with it"
                         : fmt::format("the difference to {} is noise, they tie", fmt::join(ties, "; ")),
                     text_about_test(result));
}

void add_search(Section& section, const SearchResult& result, const Told& told) {
  if (result.stopped > 0)
    section.blocks.push_back(
        warning(fmt::format("{}PARTIAL: {} stopped or not begun; the same command goes on.", told.subject,
                            counted(result.stopped, "training"))));
  section.blocks.push_back(
      result.best != nullptr
          ? finding(told.subject + answer(result))
          : warning(told.subject + "Every configuration failed: see the reasons below the table."));
  section.blocks.push_back(trials_table(result, told));
  int number = 0;
  for (const auto& grid : analysis::grids(result)) {
    const std::string suffix = ++number == 1 ? "" : fmt::format("-{}", number);
    section.blocks.push_back(accuracy_map(result, grid, told.id + "-grid" + suffix));
  }
  if (auto plot = curves(result, told); !plot.series.empty()) section.blocks.push_back(std::move(plot));
  if (result.epochs_trained < result.epochs_of_grid)
    section.blocks.push_back(plain(fmt::format(
        "{}{} epochs were trained in all; each configuration to the end of the longest would have been {}.",
        told.subject, integer(result.epochs_trained), integer(result.epochs_of_grid))));
}

using analysis::Evaluation;
using analysis::Proportion;

constexpr std::size_t kWidestMatrix = 20;  ///< the most classes for which a matrix is readable
constexpr std::size_t kListedConfusions = 20;

TableCell share_cell(const std::optional<Proportion>& proportion, const char* reason) {
  return proportion ? bounded(*proportion) : missing(reason);
}

std::string part_of_data(const measure::Record& record) {
  return fmt::format("{}, update {}, on the {} part", record.evaluation->checkpoint,
                     record.evaluation->updates, record.evaluation->part);
}

Table overall_table(const measure::Record& record, const Evaluation& result, const std::string& id) {
  const auto& evaluation = *record.evaluation;
  Table table{
      .id = id,
      .title = "Evaluation: " + part_of_data(record),
      .definition =
          "Every image counts once. Top-5: the label is among the five classes with the largest logits. Mean of "
          "classes: of their accuracies (balanced accuracy), so that small classes count as much as large ones. "
          "Intervals of accuracies: 95 %, Wilson's score interval; of the mean, joined from those (MOVER).",
      .columns = {{.key = "part", .label = "part"},
                  {.key = "samples", .label = "images", .format = Format::integer},
                  {.key = "reads", .label = "images read", .format = Format::integer},
                  {.key = "loss", .label = "loss", .format = Format::fixed3},
                  {.key = "top_1", .label = "top-1", .format = Format::percent1},
                  {.key = "top_5", .label = "top-5", .format = Format::percent1},
                  {.key = "balanced", .label = "mean of classes", .format = Format::percent1}}};
  table.rows.push_back({words(evaluation.part), value(evaluation.samples), value(evaluation.reads),
                        value(evaluation.loss), share_cell(result.top_1, ""), share_cell(result.top_5, ""),
                        share_cell(result.balanced, "")});
  return table;
}

Table class_table(const Evaluation& result, const std::string& id) {
  Table table{
      .id = id + "-classes",
      .title = "Accuracy by class",
      .definition =
          "Accuracy of a class (recall): of its images, the part that was taken for it. Precision: of the "
          "images that were taken for it, the part that is of it. Intervals: 95 %, Wilson.",
      .columns = {{.key = "class", .label = "class"},
                  {.key = "samples", .label = "images", .format = Format::integer},
                  {.key = "accuracy", .label = "accuracy", .format = Format::percent1},
                  {.key = "predicted", .label = "taken for it", .format = Format::integer},
                  {.key = "precision", .label = "precision", .format = Format::percent1}}};
  for (const auto& figures : result.classes)
    table.rows.push_back({words(figures.name), value(figures.samples),
                          share_cell(figures.recall, "no image of this class"), value(figures.predicted),
                          share_cell(figures.precision, "no image was taken for it")});
  return table;
}

/// The classes that a figure shows: all of a few, of many those with the lowest accuracy; the worst first.
Figure class_figure(const Evaluation& result, const std::string& id) {
  std::vector<const analysis::ClassFigures*> shown;
  for (const auto& one : result.classes)
    if (one.recall) shown.push_back(&one);
  std::ranges::stable_sort(shown, {}, [](const auto* one) { return one->recall->value; });
  const bool is_cut = shown.size() > kWidestMatrix;
  if (is_cut) shown.resize(kWidestMatrix);
  const auto below = std::ranges::count_if(
      result.classes, [&](const auto& one) { return one.recall && one.recall->high < result.top_1.value; });
  Figure figure{
      .id = id + "-by-class",
      .finding = below == 0 ? "No class is below the mean beyond chance"
                            : counted(below, "class is", "classes are") + " below the mean beyond chance",
      .note = is_cut ? fmt::format("Of {} classes those with the lowest accuracy. 95 % intervals, Wilson.",
                                   result.classes.size())
                     : "Accuracy of each class. 95 % intervals, Wilson."};
  Figure::View view{.x = {.label = "update"}, .y = {.label = "right", .unit = "%"}};
  for (const auto* one : shown)
    view.series.push_back({.name = one->name,
                           .points = {{.x = static_cast<double>(result.record->updates),
                                       .y = 100 * one->recall->value,
                                       .low = 100 * one->recall->low,
                                       .high = 100 * one->recall->high,
                                       .n = static_cast<int>(one->samples)}}});
  view.marks.push_back({.axis = 'y', .low = 100 * result.top_1.value, .label = "all images"});
  figure.views.push_back(std::move(view));
  return figure;
}

/// The classes of a matrix: all of a few, of many those with the most frequent confusions, in their order.
std::vector<std::size_t> classes_shown(const Evaluation& result) {
  std::vector<std::size_t> shown;
  if (result.classes.size() <= kWidestMatrix) {
    for (std::size_t i = 0; i < result.classes.size(); ++i) shown.push_back(i);
    return shown;
  }
  for (const auto& one : result.confusions)
    for (const std::size_t label : {one.label, one.predicted})
      if (shown.size() < kWidestMatrix && std::ranges::find(shown, label) == shown.end())
        shown.push_back(label);
  std::ranges::sort(shown);
  return shown;
}

Heatmap confusion_map(const Evaluation& result, const std::string& id) {
  const auto shown = classes_shown(result);
  const bool is_cut = shown.size() < result.classes.size();
  Heatmap map{
      .id = id + "-confusion",
      .finding = "No image is taken for another class",
      .note = is_cut ? fmt::format("Of {} classes those with the most frequent confusions; counts of images.",
                                   result.classes.size())
                     : "Counts of images.",
      .row_label = "shows",
      .column_label = "taken for",
      .value = {.key = "images", .label = "images", .format = Format::integer},
      .is_confusion = true};
  if (!result.confusions.empty()) {
    const auto& most = result.confusions.front();
    map.finding = fmt::format("{} is taken for {} most: {} of {} images", result.classes[most.label].name,
                              result.classes[most.predicted].name, most.samples,
                              integer(result.classes[most.label].samples));
  }
  for (const std::size_t column : shown) map.columns.push_back(result.classes[column].name);
  if (is_cut) map.columns.emplace_back("others");
  const auto& counts = result.record->confusion;
  for (const std::size_t row : shown) {
    map.rows.push_back(result.classes[row].name);
    std::int64_t rest = result.classes[row].samples;
    const auto add = [&](std::int64_t images) {
      map.cells.push_back({.value = static_cast<double>(images)});
    };
    for (const std::size_t column : shown) {
      add(counts[row][column]);
      rest -= counts[row][column];
    }
    if (is_cut) add(rest);
  }
  return map;
}

Table confusion_list(const Evaluation& result, const std::string& id) {
  Table table{.id = id + "-confusion",
              .title = "The most frequent confusions",
              .definition =
                  "Of many classes: those pairs of the confusion matrix with most images. The record has "
                  "all counts.",
              .columns = {{.key = "label", .label = "shows"},
                          {.key = "predicted", .label = "taken for"},
                          {.key = "samples", .label = "images", .format = Format::integer},
                          {.key = "part", .label = "of its class", .format = Format::percent1}}};
  for (const auto& one : result.confusions) {
    if (table.rows.size() == kListedConfusions) break;
    const auto& label = result.classes[one.label];
    table.rows.push_back({words(label.name), words(result.classes[one.predicted].name), value(one.samples),
                          share_cell(analysis::wilson(one.samples, label.samples), "")});
  }
  return table;
}

Gallery mistake_gallery(const Evaluation& result, const std::string& id) {
  const auto& mistakes = result.record->mistakes;
  Gallery gallery;
  Table& table = gallery.table;
  table = {.id = id + "-mistakes",
           .title = "The most confident mistakes",
           .definition = "Probability: of the class it was taken for, by softmax. Numbers count from 0.",
           .columns = {{.key = "sample", .label = "image"},
                       {.key = "label", .label = "shows"},
                       {.key = "predicted", .label = "taken for"},
                       {.key = "probability", .label = "probability", .format = Format::percent1}}};
  const auto name = [&](std::int64_t label) {
    const auto at = static_cast<std::size_t>(label);
    return words(at < result.classes.size() ? result.classes[at].name : fmt::format("{}", label));
  };
  for (const auto& mistake : mistakes)
    table.rows.push_back({words(mistake.path.value_or(fmt::format("number {}", mistake.index))),
                          name(mistake.label), name(mistake.predicted), value(mistake.probability)});
  for (const auto& mistake : mistakes) gallery.pictures.push_back(mistake.picture);
  return gallery;
}

}  // namespace

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

std::optional<Section> evaluation_section(const Conclusions& conclusions) {
  Section section{.id = "evaluation", .title = "What does the model get wrong?"};
  int number = 0;
  for (const auto& record : conclusions.records) {
    if (!record.evaluation) continue;
    const std::string id = ++number == 1 ? "evaluation" : fmt::format("evaluation-{}", number);
    const auto result = analysis::evaluation(*record.evaluation);
    if (!result.contradiction.empty()) {
      section.blocks.push_back(warning(fmt::format("{}: left out, it contradicts itself: {}.",
                                                   part_of_data(record), result.contradiction)));
      continue;
    }
    section.blocks.push_back(overall_table(record, result, id));
    section.blocks.push_back(confusion_map(result, id));
    section.blocks.push_back(class_figure(result, id));
    section.blocks.push_back(class_table(result, id));
    if (result.classes.size() > kWidestMatrix) section.blocks.push_back(confusion_list(result, id));
    if (!result.record->mistakes.empty()) section.blocks.push_back(mistake_gallery(result, id));
  }
  if (section.blocks.empty()) return std::nullopt;
  return section;
}

}  // namespace paceline::report
