#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/text.h"
#include "report/sections/parts.h"
#include "report/sections/sections.h"
#include "report/text.h"

// What more workers would do: the forecast of a subject as curves, parts of the step, and tables.

namespace paceline::report {
namespace {

using analysis::Forecast;
using analysis::ForecastPoint;
using analysis::Knee;

constexpr const char* kPredictionDefinition =
    "Predicted from these records alone: own work of a step at this batch, the buckets' transfers over the links "
    "that were measured, waiting for the slowest of N workers. Weak scaling: each worker keeps its batch. "
    "Brackets: 90 % intervals. Efficiency: images/s over N times those of one worker. docs/prediction.md.";

std::string workers_text(std::int64_t workers) { return base::counted(workers, "worker"); }

std::string knee_interval(const Knee& knee, const Forecast& forecast) {
  const auto most = static_cast<double>(forecast.points.back().workers);
  return knee.high >= most ? fmt::format("[{:.0f}, {:.0f} or more]", knee.low, most)
                           : fmt::format("[{:.0f}, {:.0f}]", knee.low, knee.high);
}

/// The most workers among whom the reductions are known; beyond them a step is only "at least". None: all
/// are.
std::optional<std::int64_t> last_known(const Forecast& forecast) {
  std::optional<std::int64_t> last;
  for (std::size_t i = 1; i < forecast.points.size(); ++i)
    if (forecast.points[i].lacks_link && !last) last = forecast.points[i - 1].workers;
  return last;
}

std::string limit_of(const Forecast& forecast) {
  if (!forecast.limit) return "";
  std::string part = analysis::name(*forecast.limit);
  if (forecast.limit_source != analysis::DataSource::none)
    part += fmt::format(" ({})", analysis::name(forecast.limit_source));
  return part;
}

/// "80 % efficient up to 12 workers [8, 24], then jitter costs most".
std::string finding_of(const Forecast& forecast) {
  const auto& knee = forecast.knee;
  const auto limit = limit_of(forecast);
  const auto of_limit = limit.empty() ? "" : fmt::format("; {} costs most", limit);
  if (const auto known = last_known(forecast)) {
    const auto& last = forecast.points.back();
    return fmt::format("Predicted: at most {} efficient with {}; the network beyond {} was not measured",
                       percent(last.efficiency.high), workers_text(last.workers), *known);
  }
  if (!knee.workers)
    return fmt::format("Predicted: less than {} efficient at any number of workers{}",
                       percent(knee.efficiency), of_limit);
  if (knee.is_beyond)
    return fmt::format("Predicted: at least {} efficient up to {}{}", percent(knee.efficiency),
                       workers_text(*knee.workers), of_limit);
  return fmt::format("Predicted: {} efficient up to {} {}{}", percent(knee.efficiency),
                     workers_text(*knee.workers), knee_interval(knee, forecast), of_limit);
}

std::vector<Point> measured_points(const PredictedWorkers& prediction, bool are_rates) {
  const auto& measured = prediction.forecast.measured;
  std::vector<Point> points;
  const bool is_emulated = prediction.model.is_ghost || !prediction.model.emulated.empty();
  for (const auto& one : measured) {
    const double factor = are_rates ? one.workers * one.local_batch : 100 * measured.front().step_s.median;
    Point point{.x = static_cast<double>(one.workers),
                .y = factor / one.step_s.median,
                .mark = is_emulated ? "emulated" : ""};
    if (are_rates && analysis::has_interval(one.step_s))
      point.low = factor / one.step_s.high, point.high = factor / one.step_s.low;
    points.push_back(std::move(point));
  }
  return points;
}

Figure::View view_of_prediction(const PredictedWorkers& prediction, bool are_rates) {
  const auto& forecast = prediction.forecast;
  Figure::View view{.name = are_rates ? "images/s" : "efficiency",
                    .x = {.label = "workers", .log = true},
                    .y = {.label = are_rates ? "throughput" : "efficiency",
                          .unit = are_rates ? "images/s" : "%",
                          .log = are_rates}};
  Series predicted{.name = "predicted"}, ideal{.name = "ideal", .dashed = true};
  const auto& first = forecast.points.front();
  const double one = first.images_per_s.value / static_cast<double>(first.workers);
  for (const auto& point : forecast.points) {
    const auto workers = static_cast<double>(point.workers);
    predicted.points.push_back(are_rates ? bounded_point(workers, point.images_per_s)
                                         : bounded_point(workers, point.efficiency, 100));
    ideal.points.push_back({.x = workers, .y = are_rates ? one * workers : 100});
  }
  view.series = {std::move(predicted),
                 {.name = "measured", .points = measured_points(prediction, are_rates)},
                 std::move(ideal)};
  const auto& knee = forecast.knee;
  if (const auto known = last_known(forecast))
    view.marks.push_back(
        {.axis = 'x', .low = static_cast<double>(*known), .label = "at most: network not measured"});
  else if (knee.workers && !knee.is_beyond)
    view.marks.push_back({.axis = 'x',
                          .low = static_cast<double>(*knee.workers),
                          .label = fmt::format("less than {} efficient", percent(knee.efficiency))});
  if (!are_rates) view.marks.push_back({.axis = 'y', .low = 100 * knee.efficiency, .label = ""});
  return view;
}

Figure figure_of(const PredictedWorkers& prediction, const std::string& suffix) {
  const auto& forecast = prediction.forecast;
  Figure figure{
      .id = "prediction" + suffix,
      .finding = finding_of(forecast),
      .note = fmt::format("Each worker has {:g} images a step. Band: 90 % interval; hatched: beyond "
                          "the knee, the most workers that keep {}.",
                          forecast.request.step.batch, percent(forecast.request.efficiency))};
  // The batch that is drawn stands first.
  std::vector<double> batches{forecast.request.step.batch};
  for (const auto& step : prediction.model.steps)
    if (!step.is_without_exchange && std::ranges::find(batches, step.batch) == batches.end())
      batches.push_back(step.batch);
  figure.recomputed = analysis::closed_form_of(prediction.model, forecast.request, batches);
  for (const bool are_rates : {true, false})
    figure.views.push_back(view_of_prediction(prediction, are_rates));
  return figure;
}

/// The ideal and the losses of each predicted step.
Plot parts_of_steps(const Forecast& forecast, const std::string& suffix) {
  constexpr double kShownPart = 0.001;  // of a step
  Plot plot{.id = "prediction-parts" + suffix,
            .kind = PlotKind::stacked_bar,
            .title = "What the predicted steps are made of",
            .caption =
                "Ideal: the step of the fewest workers; the other parts are what more of them lose. Gains "
                "are not drawn.",
            .x = {.label = "workers"},
            .y = {.label = "step", .unit = "s"}};
  const auto is_shown = [](const ForecastPoint& point) {
    return (point.workers & (point.workers - 1)) == 0;  // powers of two, so that bars have room
  };
  Series ideal{.name = "ideal"};
  for (const auto& point : forecast.points)
    if (is_shown(point)) {
      plot.categories.push_back(std::to_string(point.workers));
      ideal.points.push_back({.x = static_cast<double>(point.workers), .y = point.step.ideal_s});
    }
  plot.series.push_back(std::move(ideal));
  for (std::size_t i = 0; i < analysis::kLossParts; ++i) {
    Series series{.name = analysis::name(static_cast<analysis::LossPart>(i))};
    bool is_seen = false;
    for (const auto& point : forecast.points) {
      if (!is_shown(point)) continue;
      const double seconds = std::max(0.0, point.step.parts[i]);
      is_seen = is_seen || seconds > kShownPart * point.step.seconds;
      series.points.push_back({.x = static_cast<double>(point.workers), .y = seconds});
    }
    if (is_seen) plot.series.push_back(std::move(series));
  }
  return plot;
}

std::string marks_of_prediction(const ForecastPoint& point, const analysis::StepModel& model) {
  std::vector<std::string> marks;
  if (model.is_ghost || !model.emulated.empty()) marks.emplace_back("emulated");
  if (point.is_measured) marks.emplace_back("measured");
  if (point.lacks_link) marks.emplace_back("no network");
  if (point.is_beyond_samples) marks.emplace_back("tail");
  return fmt::format("{}", fmt::join(marks, " "));
}

Table table_of_points(const PredictedWorkers& prediction, const std::string& suffix) {
  const auto& [model, forecast] = prediction;
  Table table{.id = "predicted-workers" + suffix,
              .title = "Steps of more workers, predicted",
              .definition = kPredictionDefinition,
              .columns = {{.key = "workers", .label = "workers", .format = Format::integer},
                          in_ms("step", "step"),
                          in_rate("rate", "throughput", "images/s"),
                          {.key = "efficiency", .label = "efficiency", .format = Format::percent1},
                          {.key = "epoch", .label = "epoch", .unit = "s", .format = Format::seconds}}};
  bool has_tail = false, lacks_network = false, lacks_epoch = false;
  for (const auto& point : forecast.points) {
    has_tail = has_tail || point.is_beyond_samples;
    lacks_network = lacks_network || point.lacks_link;
    lacks_epoch = lacks_epoch || point.is_beyond_data;
    table.rows.push_back({with_mark(value(point.workers), marks_of_prediction(point, model)),
                          bounded(point.step_s), bounded(point.images_per_s), bounded(point.efficiency),
                          point.epoch_s.value > 0 ? bounded(point.epoch_s)
                          : point.is_beyond_data  ? missing("the training set has fewer images than one step")
                                                  : missing("the number of training images is not known")});
  }
  if (model.is_ghost)
    table.footnotes.emplace_back("emulated: workers slept through measured phases; nothing was computed.");
  if (!model.emulated.empty())
    table.footnotes.push_back(
        fmt::format("emulated: {}. Such times are of a model of that hardware.", model.emulated));
  if (lacks_network)
    table.footnotes.emplace_back(
        "no network: the one between hosts was not measured. The real step takes at least as long as predicted, "
        "and longer by what the network adds.");
  if (lacks_epoch)
    table.footnotes.emplace_back(
        "Where no epoch is given, a step would take more images than the training set has.");
  if (has_tail)
    table.footnotes.emplace_back(
        "tail: how late the latest of so many workers is was not measured. It follows from an assumed tail; the "
        "interval covers an exponential one and a Pareto one.");
  return table;
}

Table table_of_knees(const Forecast& forecast, const std::string& suffix) {
  Table table{.id = "predicted-knees" + suffix,
              .title = "How many workers are worth it, and which to measure next",
              .columns = {{.key = "what", .label = "what"},
                          {.key = "workers", .label = "workers", .format = Format::integer},
                          {.key = "why", .label = "why"}}};
  constexpr const char* kNoNetwork = "the network between hosts was not measured";
  const auto known = last_known(forecast);
  for (const auto* knee : {&forecast.knee, &forecast.half}) {
    auto& row = table.rows.emplace_back();
    row.push_back(words(fmt::format("most that keep {}", percent(knee->efficiency))));
    if (!knee->workers) {
      row.push_back(missing("not even the fewest measured workers do"));
    } else if (known && *knee->workers > *known) {
      row.push_back(missing(kNoNetwork));
    } else {
      TableCell cell = value(*knee->workers);
      cell.low = std::min(knee->low, *cell.value), cell.high = std::max(knee->high, *cell.value);
      if (knee->is_beyond) cell.mark = "or more";
      row.push_back(std::move(cell));
    }
    row.push_back(words(known && knee->workers && *knee->workers > *known ? kNoNetwork
                        : knee == &forecast.knee && forecast.limit
                            ? fmt::format("beyond, {} costs most: {} of the step of {}", limit_of(forecast),
                                          percent(forecast.limit_points), workers_text(forecast.limit_at))
                            : ""));
  }
  const bool still_grows = forecast.fastest == forecast.points.back().workers;
  auto most = value(forecast.fastest);
  if (still_grows) most.mark = "or more";
  const bool lacks = known && forecast.fastest > *known;
  table.rows.push_back({words("most images/s"), lacks ? missing(kNoNetwork) : std::move(most),
                        words(lacks         ? kNoNetwork
                              : still_grows ? "throughput still grows at the most that are predicted"
                                            : "more workers would be slower together")});
  if (forecast.next)
    table.rows.push_back(
        {words("worth measuring next"), value(forecast.next->workers),
         words(fmt::format("for the time that it takes, measuring it says most about {} (correlation {:.2f})",
                           workers_text(forecast.next->target), forecast.next->correlation))});
  return table;
}

Section section_of_prediction(const PredictedWorkers& prediction, const std::string& suffix) {
  const auto& [model, forecast] = prediction;
  // Folded: the page has to stay short, and what was measured stands first.
  Section section{.id = "prediction" + suffix, .title = "What would N workers do?", .is_folded = true};
  if (model.is_ghost || !model.emulated.empty())
    section.blocks.emplace_back(warning(fmt::format(
        "EMULATED: {}. What is predicted is about such workers, not about real ones.",
        model.is_ghost ? "the records are of workers that slept in place of computing" : model.emulated)));
  section.blocks.emplace_back(figure_of(prediction, suffix));
  section.blocks.emplace_back(table_of_knees(forecast, suffix));
  section.blocks.emplace_back(parts_of_steps(forecast, suffix));
  section.blocks.emplace_back(table_of_points(prediction, suffix));
  if (!forecast.unknown.empty())
    section.blocks.emplace_back(
        plain(fmt::format("What these records cannot tell: {}.", fmt::join(forecast.unknown, "; "))));
  return section;
}

}  // namespace

std::vector<Section> prediction_sections(const Conclusions& conclusions) {
  std::vector<Section> sections;
  for (std::size_t i = 0; i < conclusions.predictions.size(); ++i) {
    if (!conclusions.predictions[i]) continue;
    sections.push_back(section_of_prediction(
        *conclusions.predictions[i], sections.empty() ? "" : fmt::format("-{}", sections.size() + 1)));
    if (const auto& subject = conclusions.subjects[i].name; !subject.empty())
      sections.back().title += " " + subject;
  }
  return sections;
}

}  // namespace paceline::report
