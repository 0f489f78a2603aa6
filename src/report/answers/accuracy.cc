#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "analysis/converge.h"
#include "report/answers/answers.h"
#include "report/answers/wording.h"
#include "report/sections/converge_plots.h"
#include "report/sections/parts.h"
#include "report/text.h"

// What the accuracy pays for a larger batch.

namespace paceline::report {
namespace {

using analysis::Convergence;
using analysis::Variant;

/// 0.3170 -> "32 points"; below ten with a decimal.
std::string points(double difference) {
  const double size = 100 * std::abs(difference);
  return size < 10 ? fmt::format("{:.1f} points", size) : fmt::format("{:.0f} points", size);
}

/// "Batch 512 loses 32 points in 3 epochs; the best remedy returns 18."
std::string said_of_large(const Convergence& result) {
  if (!result.large) return "";
  const Variant& large = result.variants[*result.large];
  if (!large.to_baseline) return "";
  const double change = large.to_baseline->value;
  std::string said = large.to_baseline->is_noise()
                         ? fmt::format("Batch {} shows no difference beyond noise.",
                                       integer(static_cast<double>(large.cell->global_batch)))
                         : fmt::format("Batch {} {} {} in {:g} epochs",
                                       integer(static_cast<double>(large.cell->global_batch)),
                                       change < 0 ? "loses" : "gains", points(change), large.epochs);
  if (large.to_baseline->is_noise()) return said;
  if (result.give_back_most.empty()) return said + ".";
  const Variant& best = result.variants[result.give_back_most.front()];
  return best.to_large ? fmt::format("{}; the best remedy returns {}.", said, points(best.to_large->value))
                       : said + ".";
}

}  // namespace

Answer accuracy_answer(const Subject& subject) {
  constexpr const char* kQuestion = "What does accuracy pay?";
  const auto& convergence = subject.conclusions.convergence;
  const bool is_of_subject = convergence && !convergence->variants.empty() &&
                             std::find(subject.cells.cells.begin(), subject.cells.cells.end(),
                                       convergence->variants.front().cell) != subject.cells.cells.end();
  if (!is_of_subject) {
    const auto& cells = subject.cells.cells;
    return not_measured("accuracy", kQuestion, "No training was run to its end for it.",
                        cells.empty() ? "" : command_like(cells.front()->record(), "converge", ""));
  }
  const Variant& baseline = convergence->variants[convergence->baseline.value_or(0)];
  Answer answer{.id = "accuracy",
                .question = kQuestion,
                .certainty = Certainty::decided,
                .figure = percent(baseline.accuracy),
                .unit = fmt::format("at batch {}", integer(static_cast<double>(baseline.cell->global_batch))),
                .sentence = said_of_large(*convergence),
                .value = baseline.accuracy,
                .low = baseline.accuracy - 2 * baseline.standard_error,
                .high = baseline.accuracy + 2 * baseline.standard_error,
                .n = baseline.seeds,
                .evidence = "accuracy"};
  for (const measure::Record* record : baseline.records) answer.records.push_back(record->id);
  if (answer.sentence.empty()) answer.sentence = fmt::format("After {:g} epochs.", baseline.epochs);
  const bool one_seed = std::any_of(convergence->variants.begin(), convergence->variants.end(),
                                    [](const Variant& one) { return one.seeds < 2; });
  if (baseline.cell->synthetic || one_seed) {
    answer.certainty = Certainty::careful;
    answer.chip = one_seed ? "one seed" : "drawn data";
  } else if (convergence->large) {
    const auto& to_baseline = convergence->variants[*convergence->large].to_baseline;
    if (to_baseline && !to_baseline->is_clear()) answer.certainty = Certainty::not_decided;
  }
  return answer;
}

std::optional<Figure> accuracy_figure(const Subject& subject) {
  const auto& convergence = subject.conclusions.convergence;
  const Answer answer = accuracy_answer(subject);
  if (answer.certainty == Certainty::not_measured) return std::nullopt;
  Figure figure{
      .id = "accuracy",
      .finding = answer.sentence.substr(0, answer.sentence.rfind('.')),
      .note = "Test accuracy after each epoch. Bars: one standard error over seeds; of one seed none."};
  for (Plot& plot : converge_plots(*convergence)) {
    const std::string name = plot.id.substr(plot.id.rfind('-') + 1);
    figure.views.push_back({.name = name == "epochs"    ? "epoch"
                                    : name == "updates" ? "update"
                                                        : "time",
                            .x = plot.x,
                            .y = plot.y,
                            .series = std::move(plot.series)});
  }
  if (figure.views.empty()) return std::nullopt;
  return figure;
}

}  // namespace paceline::report
