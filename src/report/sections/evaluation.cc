#include "analysis/trainings/evaluation.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/sections/parts.h"
#include "report/sections/sections.h"
#include "report/text.h"

namespace paceline::report {
namespace {

using analysis::Evaluation;
using analysis::Proportion;

constexpr std::size_t kWidestMatrix = 20;  ///< the most classes for which a matrix is readable on a terminal
constexpr std::size_t kListedConfusions = 20;

TableCell share_cell(const std::optional<Proportion>& proportion, const char* reason) {
  if (!proportion) return missing(reason);
  return {.value = proportion->value, .low = proportion->low, .high = proportion->high};
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
          "Every image counts once. Top-5: the label is among the five classes with the largest logits. "
          "Intervals of accuracies: 95 %, Wilson's score interval.",
      .columns = {{.key = "part", .label = "part"},
                  {.key = "samples", .label = "images", .format = Format::integer},
                  {.key = "reads", .label = "images read", .format = Format::integer},
                  {.key = "loss", .label = "loss", .format = Format::fixed3},
                  {.key = "top_1", .label = "top-1", .format = Format::percent1},
                  {.key = "top_5", .label = "top-5", .format = Format::percent1}}};
  table.rows.push_back({words(evaluation.part), value(static_cast<double>(evaluation.samples)),
                        value(static_cast<double>(evaluation.reads)), value(evaluation.loss),
                        share_cell(result.top_1, ""), share_cell(result.top_5, "")});
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
    table.rows.push_back({words(figures.name), value(static_cast<double>(figures.samples)),
                          share_cell(figures.recall, "no image of this class"),
                          value(static_cast<double>(figures.predicted)),
                          share_cell(figures.precision, "no image was taken for it")});
  return table;
}

Table confusion_matrix(const Evaluation& result, const std::string& id) {
  Table table{.id = id + "-confusion",
              .title = "Confusion matrix",
              .definition = "Rows: what the images show; columns: what they were taken for; counts.",
              .columns = {{.key = "class", .label = "shows \\ taken for"}}};
  for (const auto& figures : result.classes)
    table.columns.push_back({.key = figures.name, .label = figures.name, .format = Format::integer});
  const auto& counts = result.record->confusion;
  for (std::size_t i = 0; i < counts.size(); ++i) {
    table.rows.push_back({words(result.classes[i].name)});
    for (const auto count : counts[i]) table.rows.back().push_back(value(static_cast<double>(count)));
  }
  return table;
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
    table.rows.push_back({words(label.name), words(result.classes[one.predicted].name),
                          value(static_cast<double>(one.samples)),
                          share_cell(analysis::wilson(one.samples, label.samples), "")});
  }
  return table;
}

Table mistake_table(const Evaluation& result, const std::string& id) {
  const auto& mistakes = result.record->mistakes;
  Table table{.id = id + "-mistakes",
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
  return table;
}

}  // namespace

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
    section.blocks.push_back(class_table(result, id));
    section.blocks.push_back(result.classes.size() <= kWidestMatrix ? confusion_matrix(result, id)
                                                                    : confusion_list(result, id));
    if (!result.record->mistakes.empty()) section.blocks.push_back(mistake_table(result, id));
  }
  if (section.blocks.empty()) return std::nullopt;
  return section;
}

bool is_of_evaluation(const measure::Record& record) { return record.evaluation.has_value(); }

}  // namespace paceline::report
