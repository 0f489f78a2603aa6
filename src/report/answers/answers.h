#pragma once

/// Makes the answers of a report's first screen and the figures behind them. All are about one cell, the
/// operating point.

#include <optional>
#include <vector>

#include "analysis/compare/operating_point.h"
#include "analysis/compare_runs.h"
#include "analysis/trainings/evaluation.h"
#include "report/conclusions.h"
#include "report/document.h"

namespace paceline::report {

struct CompareOptions;  // build.h

/// One model and data, and the cell that its answers are about.
struct Subject {
  const Conclusions& conclusions;
  const analysis::CellGroup& cells;
  analysis::OperatingPoint point;
  /// If the operating point is a row of scaling: that row, weak before strong. Null if no such row has
  /// ratios.
  const analysis::ScalingGroup* group = nullptr;
  const analysis::ScalingRow* row = nullptr;

  [[nodiscard]] const analysis::Cell* best() const { return point.best(); }
  /// Of more workers; null: there is none.
  [[nodiscard]] const PredictedWorkers* prediction() const;
};
[[nodiscard]] Subject subject_of(const Conclusions& conclusions, const analysis::CellGroup& cells);

// Answers. For a subject without an operating point all are "not measured".
[[nodiscard]] Answer best_answer(const Subject& subject);
[[nodiscard]] Answer batch_answer(const Subject& subject);
[[nodiscard]] Answer workers_answer(const Subject& subject);
[[nodiscard]] Answer limit_answer(const Subject& subject);
[[nodiscard]] Answer network_answer(const Subject& subject);
[[nodiscard]] Answer accuracy_answer(const Subject& subject);
[[nodiscard]] Next next_steps(const Subject& subject);

// If the records are a single training that ended an epoch: what it reached, its curves ("hero"), what to do
// with it. Requires  is_of_one_training()
[[nodiscard]] bool is_of_one_training(const Subject& subject);
[[nodiscard]] Answer training_answer(const Subject& subject);
[[nodiscard]] std::optional<Figure> training_figure(const Subject& subject);
[[nodiscard]] Next steps_after_training(const Subject& subject);

/// Whether a pair is compared, and the interval of its ratio holds 1 and reaches so far that it shows neither
/// a change nor the absence of one.
[[nodiscard]] bool is_open(const analysis::Pair& pair);
/// The mark of its more doubtful side: "maybe disturbed"; empty if nothing worked beside either.
[[nodiscard]] std::string mark_of_pair(const analysis::Pair& pair);

/// Two sets of records: what changed, both in one figure, what to do next.
[[nodiscard]] Section answer_of_comparison(const analysis::RunComparison& comparison,
                                           const CompareOptions& options);

/// images/s and speedups against the global batch, one line for each way of using the machine. The `id` is
/// "hero".
[[nodiscard]] std::optional<Figure> hero_figure(const Subject& subject);

/// If the records are one evaluation: what is right and what is confused. Moves the drawings that show it out
/// of `details`, its evaluation_section(). Requires  the evaluation does not contradict itself
[[nodiscard]] Section answer_of_evaluation(const measure::Record& record, Section& details);

/// If the records are one search: which configuration is best and by how much. Moves the drawings out of
/// `details`, its search_section().
[[nodiscard]] Section answer_of_search(const analysis::SearchResult& result, Section& details);

// Evidence; nothing if there is nothing to draw.
[[nodiscard]] std::optional<Figure> batch_figure(const Subject& subject);
[[nodiscard]] std::optional<Figure> workers_figure(const Subject& subject);
[[nodiscard]] std::optional<Waterfall> step_waterfall(const Subject& subject);
/// The last steps of a record of the operating point ("timeline"), and of its baseline of one worker
/// ("timeline-baseline"), if the records have them.
[[nodiscard]] std::vector<Timeline> step_timelines(const Subject& subject);
[[nodiscard]] std::optional<Figure> network_figure(const Subject& subject);
[[nodiscard]] std::optional<Figure> accuracy_figure(const Subject& subject);
/// The steps of every measured window, repeats that were set aside included, in the order in which they were
/// measured; nothing if no window has step times.
[[nodiscard]] std::optional<Strip> step_strip(const Subject& subject);

/// The sections of searches and evaluations. One search, or one evaluation, has its answer in front; tables
/// of an evaluation are details.
[[nodiscard]] std::vector<Section> sections_of_own_answers(const Conclusions& conclusions);

/// The sections "answer" (with several subjects one each: "answer-2") and "evidence"; then "cells".
[[nodiscard]] std::vector<Section> answer_sections(const Conclusions& conclusions);

}  // namespace paceline::report
