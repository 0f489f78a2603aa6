#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "analysis/compare/interval.h"
#include "base/text.h"
#include "report/answers/answers.h"
#include "report/answers/wording.h"
#include "report/sections/parts.h"
#include "report/text.h"

// The figure of the first screen: images/s against the global batch, one curve for each way of using the
// machine.

namespace paceline::report {
namespace {

using analysis::Cell;

/// A line of the figure: cells with the same name except for the batch.
struct Curve {
  std::string name;
  std::vector<const Cell*> cells;  ///< by global batch, one for each: the faster if there are two
  [[nodiscard]] double fastest() const {
    double most = 0;
    for (const Cell* cell : cells) most = std::max(most, cell->images_per_s.median);
    return most;
  }
};

/// All measured cells that were run for timing, or those of trainings if there are none.
std::vector<const Cell*> drawn_cells(const Subject& subject) {
  std::vector<const Cell*> cells = subject.point.eligible;
  for (const auto& one : subject.point.left_out) cells.push_back(one.cell);
  return cells;
}

/// The curve of the best cell first, then the others, the fastest first.
std::vector<Curve> curves_of(const Subject& subject) {
  std::map<std::string, std::map<std::int64_t, const Cell*>> by_name;
  for (const Cell* cell : drawn_cells(subject)) {
    auto& place = by_name[way_of(*cell)][cell->global_batch];
    if (place == nullptr || cell == subject.best() ||
        (place != subject.best() && cell->images_per_s.median > place->images_per_s.median))
      place = cell;
  }
  std::vector<Curve> curves;
  for (const auto& [name, cells] : by_name) {
    Curve& curve = curves.emplace_back();
    curve.name = name;
    for (const auto& [batch, cell] : cells) curve.cells.push_back(cell);
  }
  const std::string first = way_of(*subject.best());
  std::stable_sort(curves.begin(), curves.end(), [&](const Curve& a, const Curve& b) {
    return (a.name == first) != (b.name == first) ? a.name == first : a.fastest() > b.fastest();
  });
  return curves;
}

Series series_of(const Curve& curve, const Subject& subject, bool is_hidden) {
  Series series{.name = curve.name, .hidden = is_hidden};
  for (const Cell* cell : curve.cells) {
    Point point = point_of(static_cast<double>(cell->global_batch), cell->images_per_s, *cell);
    if (cell == subject.best()) point.mark = point.mark.empty() ? "best" : "best, " + point.mark;
    series.points.push_back(std::move(point));
  }
  return series;
}

/// N times the baseline's line at equal local batches. The gap between it and a measured line is the lost
/// efficiency.
Series ideal_of(const std::vector<Curve>& curves, const Subject& subject) {
  const Cell& best = *subject.best();
  if (subject.group == nullptr || best.workers < 2) return {};
  const std::string baseline = way_of(*subject.group->baseline);
  const auto curve = std::ranges::find(curves, baseline, &Curve::name);
  if (curve == curves.end()) return {};
  const double growth = static_cast<double>(best.workers) / subject.group->baseline->workers;
  Series series{.name = fmt::format("{} times {}", number(growth), baseline), .dashed = true};
  for (const Cell* cell : curve->cells)
    series.points.push_back(
        {.x = growth * static_cast<double>(cell->global_batch), .y = growth * cell->images_per_s.median});
  return series.points.size() < 2 ? Series{} : series;
}

Figure::View rates(const Subject& subject) {
  constexpr std::size_t kLines = 5;
  const auto curves = curves_of(subject);
  Figure::View view{.name = "images/s",
                    .x = {.label = "global batch", .log = true},
                    .y = {.label = "throughput", .unit = "images/s"}};
  std::size_t shown = 0;
  for (const Curve& curve : curves) {
    const bool is_hidden = std::ranges::all_of(curve.cells, &Cell::oversubscribed) || shown >= kLines;
    shown += is_hidden ? 0 : 1;
    view.series.push_back(series_of(curve, subject, is_hidden));
  }
  if (Series ideal = ideal_of(curves, subject); !ideal.points.empty())
    view.series.push_back(std::move(ideal));
  const auto& best = subject.best()->images_per_s;
  if (analysis::has_interval(best))
    view.marks.push_back({.axis = 'y', .low = best.low, .high = best.high, .label = "interval of the best"});
  return view;
}

Figure::View speedups(const Subject& subject, analysis::Mode mode) {
  Figure::View view{.name = fmt::format("{} speedup", analysis::name(mode)),
                    .x = {.label = "workers"},
                    .y = {.label = mode == analysis::Mode::weak ? "scaled speedup" : "speedup"}};
  double most = 0, best_speedup = 0;
  const analysis::ScalingRow* fastest = nullptr;
  int cores = 0;
  for (const auto& group : subject.conclusions.scaling(mode)) {
    if (group.subject != subject.cells.name || group.baseline == nullptr) continue;
    cores = group.baseline->record().environment.cores * analysis::nodes(group.baseline->record());
    Series series{.name = fmt::format("batch {}{}", group.batch, behind(group.setup))};
    for (const auto& row : group.rows) {
      if (!row.has_ratios) continue;
      series.points.push_back(point_of(row.cell->workers, row.speedup, *row.cell));
      mark_above_ideal(series.points.back(), row);
      most = std::max(most, static_cast<double>(row.cell->workers) / group.baseline->workers);
      if (row.cell->oversubscribed || row.is_baseline || row.speedup.median <= best_speedup) continue;
      best_speedup = row.speedup.median;
      fastest = &row;
    }
    if (series.points.size() > 1) view.series.push_back(std::move(series));
  }
  if (view.series.empty()) return view;
  const bool is_weak = mode == analysis::Mode::weak;
  view.finding = fastest == nullptr
                     ? fmt::format("{} scaling", is_weak ? "Weak" : "Strong")
                     : fmt::format("{} scaling: up to {} times as fast, with {}", is_weak ? "Weak" : "Strong",
                                   number(best_speedup), counted(fastest->cell->workers, "worker"));
  view.note = fmt::format("Against fewer workers, {}. Error bars: 95 % intervals of the ratio.",
                          is_weak ? "each with the same batch" : "all together with the same batch");
  const bool has_end = is_on_cpu(*subject.best()) && cores > 0 && most > cores;
  const double ideal = has_end ? cores : most;
  view.series.push_back(
      {.name = "ideal", .points = {{.x = 1, .y = 1}, {.x = ideal, .y = ideal}}, .dashed = true});
  if (has_end) view.marks.push_back(beyond_cores(cores));
  return view;
}

/// The caption: which way is fastest, as far as the intervals allow.
std::string finding_of_grid(const Subject& subject) {
  const Cell& best = *subject.best();
  const std::string way = way_of(best);
  std::set<std::int64_t> batches{best.local_batch};
  bool is_one_way = true;
  for (const Cell* cell : subject.point.choice.overlap) {
    is_one_way = is_one_way && way_of(*cell) == way;
    batches.insert(cell->local_batch);
  }
  if (!is_one_way)
    return fmt::format("{} {} fastest; {} may be as fast", way, best.workers > 1 ? "are" : "is",
                       counted(subject.point.choice.overlap.size(), "other setting", "other settings"));
  const auto sizes = base::texts_of(batches, [](auto batch) { return integer(batch); });
  constexpr std::size_t kMost = 4;
  return sizes.size() > kMost ? way + ": fastest at most batches"
                              : fmt::format("{}: fastest with {} images{}", way, listed(sizes),
                                            best.workers > 1 ? " each" : "");
}

bool holds_disturbed(const Figure::View& view) {
  return std::ranges::any_of(view.series, [](const auto& series) {
    return std::ranges::any_of(series.points, [](const auto& point) { return point.mark == "disturbed"; });
  });
}

}  // namespace

std::optional<Figure> hero_figure(const Subject& subject) {
  if (subject.best() == nullptr) return std::nullopt;
  Figure figure{.id = "hero",
                .finding = finding_of_grid(subject),
                .note =
                    "What touches the band may be as fast as the best. Error bars: 95 % intervals of the "
                    "median."};
  figure.views.push_back(rates(subject));
  if (holds_disturbed(figure.views.front())) figure.note += " Hollow cells were disturbed.";
  for (const auto mode : {analysis::Mode::weak, analysis::Mode::strong})
    if (auto view = speedups(subject, mode); !view.series.empty()) figure.views.push_back(std::move(view));
  return figure;
}

}  // namespace paceline::report
