#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "report/sections/parts.h"
#include "report/sections/sections.h"

// Predictions that were written down before, and what was measured since.

namespace paceline::report {
namespace {

using analysis::ScoredStep;

constexpr const char* kScoresDefinition =
    "measured / predicted: 1.03 is a step that took 3 % longer than predicted. Brackets: the prediction's 90 % "
    "interval; inside: the measured step lies in it. The last two columns are measured over what two naive rivals "
    "predicted from the same steps: the overhead of the most measured workers whatever their number, and the "
    "universal scalability law. docs/prediction.md.";

std::vector<TableCell> row_of_score(const std::string& name, const ScoredStep& step) {
  const auto ratio = [&](double seconds) {
    return value(seconds > 0 ? std::optional(step.measured / seconds) : std::nullopt,
                 "the rival predicts nothing here");
  };
  return {words(name),
          value(step.workers),
          value(step.local_batch),
          words(std::string(analysis::name(step.kind))),
          value(step.measured),
          bounded(step.predicted),
          value(step.ratio()),
          words(step.is_inside() ? "inside" : "OUTSIDE"),
          ratio(step.constant_overhead),
          ratio(step.scalability_law)};
}

}  // namespace

std::optional<Section> scores_section(const Conclusions& conclusions) {
  if (conclusions.scored.empty()) return std::nullopt;
  Section section{.id = "scores", .title = "How right were the predictions?"};
  Table table{
      .id = "prediction-scores",
      .title = "Predictions and what was measured since",
      .definition = kScoresDefinition,
      .columns = {{.key = "prediction", .label = "prediction"},
                  {.key = "workers", .label = "workers", .format = Format::integer},
                  {.key = "local_batch", .label = "local batch", .format = Format::integer},
                  {.key = "kind", .label = "measured on"},
                  in_ms("measured", "measured step"),
                  in_ms("predicted", "predicted step"),
                  {.key = "ratio", .label = "measured / predicted", .format = Format::fixed3},
                  {.key = "inside", .label = "interval"},
                  {.key = "constant_overhead", .label = "/ constant overhead", .format = Format::fixed3},
                  {.key = "scalability_law", .label = "/ scalability law", .format = Format::fixed3}}};
  std::size_t inside = 0;
  for (const auto& [name, steps, not_scored] : conclusions.scored) {
    for (const auto& step : steps) {
      inside += step.is_inside() ? 1 : 0;
      table.rows.push_back(row_of_score(name, step));
    }
    if (!steps.empty()) continue;
    section.blocks.emplace_back(plain(fmt::format(
        "{}: no record answers it{}", name, not_scored.empty() ? "." : ": " + not_scored.front() + ".")));
  }
  if (table.rows.empty()) return section;
  section.blocks.emplace(section.blocks.begin(),
                         finding(fmt::format("{} of {} inside their 90 % interval.", inside,
                                             base::counted(std::ssize(table.rows), "predicted step"))));
  section.blocks.emplace_back(std::move(table));
  return section;
}

}  // namespace paceline::report
