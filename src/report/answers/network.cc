#include <fmt/format.h>

#include <algorithm>

#include "analysis/steps/bandwidth.h"
#include "analysis/steps/breakdown.h"
#include "report/answers/answers.h"
#include "report/answers/wording.h"
#include "report/sections/parts.h"
#include "report/sections/sections.h"
#include "report/text.h"

// The speed of the network, and what an infinitely fast one would gain.

namespace paceline::report {
namespace {

/// Names the workers whose all-reduces these are: "alone, 2 ranks", "alone, 4 ranks in 2 processes, spread".
std::string name_alone(const measure::Record& record) {
  std::string name = fmt::format("alone, {}", counted(record.workers, "rank"));
  const auto& how = record.communication;
  if (how.processes.value_or(1) > 1) name += fmt::format(" in {} processes", *how.processes);
  if (how.placement) name += ", " + *how.placement;
  return name;
}

/// Whether the record belongs to the subject. In a study of several models, a record that names a model
/// belongs to that model.
bool is_of(const Subject& subject, const measure::Record& record) {
  if (record.model.name.empty() || subject.cells.cells.empty()) return true;
  const auto& own = subject.cells.cells.front()->record();
  return own.model.name == record.model.name && own.data.spec == record.data.spec;
}

/// A median so many times the fastest call tells of other programs, not of the network.
constexpr double kUneven = 3;
constexpr const char* kUnevenMark = "median over 3 times the fastest call";

/// A line fitted to latency and bandwidth says nothing where points lie further from it than this.
constexpr double kMostResidual = 0.25;

/// Measured bus bandwidth by size.
Series timed_alone(const measure::Record& record) {
  Series series{.name = name_alone(record)};
  for (const auto& one : *record.collectives) {
    const auto figures = analysis::figures(one, record.workers);
    if (one.collective != "all_reduce" || !one.in_place || !figures.busbw) continue;
    const bool is_uneven =
        !one.seconds.empty() && figures.seconds.median > kUneven * *std::ranges::min_element(one.seconds);
    Point point = point_of(static_cast<double>(one.bytes), *figures.busbw,
                           record.oversubscribed ? "oversubscribed"
                           : is_uneven           ? kUnevenMark
                                                 : "");
    point.record = record.id;
    series.points.push_back(std::move(point));
  }
  return series;
}

/// Bus bandwidth by size as predicted by latency and bandwidth, fitted to the same sizes.
std::optional<Series> fitted(const measure::Record& record, const Series& timed) {
  if (!record.link_fits) return std::nullopt;
  for (const auto& fit : *record.link_fits) {
    if (fit.collective != "all_reduce" || !fit.in_place || !analysis::shows_bandwidth(fit, record) ||
        fit.residual > kMostResidual)
      continue;
    Series series{
        .name = fmt::format("fit, {}: {} + X / {} GB/s, residual {}", counted(record.workers, "rank"),
                            duration(fit.alpha_s), number(fit.bytes_per_s / 1e9), percent(fit.residual)),
        .dashed = true};
    const double factor = analysis::bus_factor("all_reduce", record.workers);
    for (const Point& point : timed.points)
      series.points.push_back(
          {.x = point.x, .y = factor * point.x / (fit.alpha_s + point.x / fit.bytes_per_s) / 1e9});
    return series;
  }
  return std::nullopt;
}

/// The buckets of trainings, each at the size of its largest message.
Series in_training(const Subject& subject) {
  Series series{.name = "in training, by its largest bucket"};
  for (const analysis::Cell* cell : subject.point.eligible)
    if (const auto one = analysis::bandwidth(*cell)) {
      series.points.push_back(point_of(one->largest_message, one->busbw, *cell));
      if (auto& mark = series.points.back().mark; cell == subject.best())
        mark = mark.empty() ? "best" : "best, " + mark;
    }
  return series;
}

std::string finding_of_network(const std::optional<analysis::Bandwidth>& best, double most_alone) {
  if (!best)
    return most_alone > 0 ? fmt::format("Alone, the all-reduce carries up to {} GB/s", number(most_alone))
                          : "What all-reduces carry, by the size of a message";
  if (most_alone <= 0)
    return fmt::format("In training the all-reduce carries {} GB/s", number(best->busbw.median));
  return fmt::format(
      "In training the all-reduce carries {} GB/s; alone, up to {} GB/s, depending on the "
      "message size",
      number(best->busbw.median), number(most_alone));
}

/// The operating point, or if it sends nothing the fastest cell whose transfers were timed, also one that is
/// not recommended; null if there is none.
const analysis::Cell* fastest_that_sends(const Subject& subject) {
  // The operating point is the first that is eligible.
  for (const auto* cells : {&subject.point.eligible, &subject.cells.cells})
    for (const analysis::Cell* cell : *cells)
      if (analysis::bandwidth(*cell)) return cell;
  return nullptr;
}

}  // namespace

Answer network_answer(const Subject& subject) {
  constexpr const char* kQuestion = "How fast is the network?";
  const analysis::Cell* best = fastest_that_sends(subject);
  if (best == nullptr) {
    const bool is_alone = std::ranges::all_of(subject.cells.cells, [](const analysis::Cell* cell) {
      return cell->workers == 1 || !cell->is_measured();
    });
    Answer answer = not_measured(
        "network", kQuestion,
        is_alone ? "One worker sends nothing; more were not measured." : "Not judged: no transfer was timed.",
        "");
    if (subject.best() != nullptr)
      answer.command = command_like(subject.best()->record(), "scale",
                                    fmt::format("--workers 1,2 --batches {}", subject.best()->local_batch));
    return answer;
  }
  const auto one = analysis::bandwidth(*best);
  const auto parts = analysis::breakdown(*best).mean;
  const double gain = parts.exposed_transfer / (parts.total() - parts.exposed_transfer);
  Answer answer{.id = "network",
                .question = kQuestion,
                .figure = number(one->busbw.median),
                .unit = "GB/s busbw",
                .evidence = "network"};
  if (one->ceiling) {
    const auto low = rough(one->ceiling->low), high = rough(one->ceiling->high);
    answer.sentence = fmt::format("Alone, such messages reach {} GB/s. ",
                                  !analysis::has_interval(*one->ceiling) ? number(one->ceiling->median)
                                  : low == high                          ? low
                                                : fmt::format("{} to {}", low, high));
  }
  answer.sentence += best == subject.best() ? fmt::format("A free network would gain {}.", about(gain))
                                            : fmt::format("Of {}, which are not the fastest.", way_of(*best));
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
  const auto best = subject.best() != nullptr ? analysis::bandwidth(*subject.best()) : std::nullopt;
  double most_alone = 0;
  for (const measure::Record& record : subject.conclusions.records) {
    if (!is_of_collectives(record) || !is_of(subject, record)) continue;
    Series timed = timed_alone(record);
    if (timed.points.empty()) continue;
    const bool is_of_best = best && record.workers == best->cell->workers;
    for (const Point& point : timed.points)
      if (is_of_best || !best) most_alone = std::max(most_alone, point.y);
    auto fit = fitted(record, timed);
    view.series.push_back(std::move(timed));
    if (fit) view.series.push_back(std::move(*fit));
  }
  if (Series training = in_training(subject); !training.points.empty())
    view.series.push_back(std::move(training));
  if (view.series.empty()) return std::nullopt;
  if (best && best->ceiling)
    view.marks.push_back({.axis = 'y', .low = best->ceiling->median, .label = "its own buckets alone"});
  Figure figure{.id = "network",
                .finding = finding_of_network(best, most_alone),
                .note = "busbw: what each link would carry in a ring; comparable across numbers of workers."};
  const auto is_fit = [](const Series& series) { return series.name.starts_with("fit"); };
  if (std::ranges::any_of(view.series, is_fit)) figure.note += " Fit: t = latency + X / bandwidth.";
  figure.views.push_back(std::move(view));
  return figure;
}

}  // namespace paceline::report
