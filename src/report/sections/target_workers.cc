#include <fmt/format.h>

#include <algorithm>

#include "analysis/target/target_question.h"
#include "report/sections/parts.h"
#include "report/sections/sections.h"
#include "report/text.h"

// With how many workers a target is reached: the best batch of each number, its time and its cost.

namespace paceline::report {
namespace {

using analysis::TargetChoice;

constexpr const char* kTargetWorkersDefinition =
    "Time: steps to the target at the batch x the predicted step of so many workers, and the evaluations after each "
    "epoch, or after as many steps as in the trainings. Batch: of those between the trained ones whose steps are known, "
    "the one with the least time; brackets hold those of other curves that the trainings do not exclude. Rate: on a "
    "line between the best rates of the trained batches. Worker-hours: workers x time. Intervals: of the steps (95 %) "
    "and of step and evaluations (90 %) in quadrature. docs/prediction.md.";

constexpr const char* kFront = "*";
constexpr const char* kEnd = "end";

std::string choice_text(const TargetChoice& choice) {
  return choice.low == choice.high
             ? counted(choice.workers, "worker")
             : fmt::format("{} [{}, {}]", counted(choice.workers, "worker"), choice.low, choice.high);
}

/// "4 workers [2, 8] reach the target soonest, in 12 min at a global batch of 512; 1 worker costs least."
std::string finding_of_target(const AnsweredTarget& answered) {
  const auto& fastest = *answered.answer.fastest;
  const auto& point = *answered.answer.at(fastest.workers);
  const auto& cheapest = *answered.answer.cheapest;
  auto text = fmt::format("{} to {} {:g} soonest: predicted {} at a global batch of {:g}",
                          choice_text(fastest), answered.target.quantity, answered.target.value,
                          duration(point.time_s.value), point.batch.value);
  if (cheapest.workers != fastest.workers)
    text += fmt::format("; {} cheapest: {}", choice_text(cheapest),
                        duration(answered.answer.at(cheapest.workers)->time_s.value));
  return text + ".";
}

Table table_of_answer(const AnsweredTarget& answered, const std::string& suffix) {
  Table table{
      .id = "target-workers" + suffix,
      .title = fmt::format("Workers, batch, time and cost to {} {:g}", answered.target.quantity,
                           answered.target.value),
      .definition = kTargetWorkersDefinition,
      .columns = {{.key = "workers", .label = "workers", .format = Format::integer},
                  {.key = "global_batch", .label = "global batch", .format = Format::integer},
                  {.key = "steps", .label = "steps", .format = Format::integer},
                  in_ms("step", "step"),
                  {.key = "evaluations", .label = "evaluations", .unit = "s", .format = Format::seconds},
                  {.key = "lr", .label = "learning rate"},
                  {.key = "time", .label = "time", .unit = "s", .format = Format::seconds},
                  {.key = "worker_hours", .label = "worker-hours", .unit = "h", .format = Format::rate}}};
  bool has_end = false;
  for (const auto& point : answered.answer.points) {
    has_end = has_end || point.is_at_end;
    table.rows.push_back({with_mark(value(point.workers), point.is_on_front ? kFront : ""),
                          with_mark(bounded(point.batch), point.is_at_end ? kEnd : ""), bounded(point.steps),
                          bounded(point.step_s), value(point.evaluations_s),
                          words(fmt::format("{:.3g}", analysis::rate_at(answered.target, point.batch.value))),
                          bounded(point.time_s), bounded(point.cost)});
  }
  table.footnotes.push_back(
      fmt::format("{}: no other number of workers is both faster and cheaper.", kFront));
  if (has_end)
    table.footnotes.push_back(
        fmt::format("{}: the smallest or the largest batch that is known; another may be faster.", kEnd));
  if (answered.lacks_link > 0)
    table.footnotes.push_back(
        fmt::format("From {} on the network was not measured.", counted(answered.lacks_link, "worker")));
  return table;
}

Plot plot_of_answer(const AnsweredTarget& answered, const std::string& suffix, bool is_cost) {
  Plot plot{.id = (is_cost ? "target-cost" : "target-time") + suffix,
            .title = fmt::format("{} to the target against workers", is_cost ? "Cost" : "Time"),
            .caption = "Each number of workers at its best batch.",
            .x = {.label = "workers", .log = true},
            .y = {.label = is_cost ? "worker-hours" : "time", .unit = is_cost ? "h" : "s", .log = true}};
  Series series{.name = "predicted"};
  for (const auto& point : answered.answer.points)
    series.points.push_back(
        bounded_point(static_cast<double>(point.workers), is_cost ? point.cost : point.time_s));
  plot.series.push_back(std::move(series));
  return plot;
}

}  // namespace

std::optional<Section> target_workers_section(const Conclusions& conclusions) {
  if (conclusions.answered_targets.empty()) return std::nullopt;
  Section section{.id = "target-workers", .title = "How many workers reach the target?", .is_folded = true};
  std::string suffix;
  for (const auto& answered : conclusions.answered_targets) {
    section.blocks.emplace_back(finding(finding_of_target(answered)));
    section.blocks.emplace_back(table_of_answer(answered, suffix));
    for (const bool is_cost : {false, true})
      section.blocks.emplace_back(plot_of_answer(answered, suffix, is_cost));
    suffix = fmt::format("-{}", section.blocks.size());
  }
  return section;
}

}  // namespace paceline::report
