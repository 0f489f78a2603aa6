#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "analysis/bandwidth.h"
#include "analysis/breakdown.h"
#include "analysis/collectives.h"
#include "report/answers/answers.h"
#include "report/answers/wording.h"
#include "report/sections/parts.h"
#include "report/sections/sections.h"
#include "report/text.h"

// What the network gives, and what a free one would.

namespace paceline::report {

Answer network_answer(const Subject& subject) {
  constexpr const char* kQuestion = "What does the network give?";
  const analysis::Cell* best = subject.best();
  if (best == nullptr || best->workers == 1) {
    Answer answer = not_measured("network", kQuestion, "One worker sends nothing.", "");
    if (best != nullptr)
      answer.command =
          command_like(best->record(), "scale", fmt::format("--workers 1,2 --batches {}", best->local_batch));
    return answer;
  }
  const auto one = analysis::bandwidth(*best);
  if (!one) return not_measured("network", kQuestion, "No transfer of the best cell was timed.", "");
  const auto parts = analysis::breakdown(*best).mean;
  const double gain = parts.exposed_transfer / (parts.total() - parts.exposed_transfer);
  Answer answer{.id = "network",
                .question = kQuestion,
                .figure = number(one->busbw.median),
                .unit = "GB/s busbw",
                .evidence = "network"};
  if (one->utilisation)
    answer.sentence = fmt::format("{} of what it gives alone. ", about(one->utilisation->median));
  answer.sentence += fmt::format("A free network would gain {}.", about(gain));
  judge(answer, *best);
  constexpr double kLimit = 0.05;
  if (answer.chip.empty()) answer.chip = gain < kLimit ? "not the limit" : "costs time";
  take_figures(answer, one->busbw, *best);
  return answer;
}

std::optional<Figure> network_figure(const Subject& subject) {
  Figure::View view{.name = "busbw",
                    .x = {.label = "message", .unit = "B", .log = true},
                    .y = {.label = "bus bandwidth", .unit = "GB/s"}};
  std::map<std::string, Series> alone;
  for (const measure::Record& record : subject.conclusions.records) {
    if (!is_of_collectives(record)) continue;
    for (const auto& one : *record.collectives) {
      const auto figures = analysis::figures(one, record.workers);
      if (one.collective != "all_reduce" || !figures.busbw) continue;
      Series& series = alone[fmt::format("alone, {}", count(record.workers, "rank"))];
      series.points.push_back(point_of(static_cast<double>(one.bytes), *figures.busbw, ""));
      series.points.back().record = record.id;
    }
  }
  for (auto& [name, series] : alone) {
    series.name = name;
    view.series.push_back(std::move(series));
  }
  Series training{.name = "in training"};
  for (const analysis::Cell* cell : subject.point.eligible)
    if (const auto one = analysis::bandwidth(*cell)) {
      training.points.push_back(point_of(one->largest_message, one->busbw, *cell));
      if (cell == subject.best()) training.points.back().mark = "best";
    }
  if (training.points.empty() && view.series.empty()) return std::nullopt;
  if (!training.points.empty()) view.series.push_back(std::move(training));
  Figure figure{.id = "network",
                .finding = "What all-reduces carry, by the size of a message",
                .note = "busbw: what each link would carry in a ring; comparable across numbers of workers."};
  if (const auto* best = subject.best())
    if (const auto one = analysis::bandwidth(*best))
      figure.finding = fmt::format("In training the all-reduce carries {} GB/s", number(one->busbw.median));
  figure.views.push_back(std::move(view));
  return figure;
}

}  // namespace paceline::report
