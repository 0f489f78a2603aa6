#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "analysis/compare/consistency.h"
#include "measure/disturbance.h"
#include "measure/statistics.h"
#include "report/answers/answers.h"
#include "report/answers/wording.h"
#include "report/sections/parts.h"
#include "report/text.h"

// Single steps, beside what other programs did meanwhile: whether a configuration is slow, or was measured at
// a bad moment, is seen at a glance.

namespace paceline::report {
namespace {

using analysis::Cell;
using measure::Record;

/// Groups of all windows together: more cannot be told apart on a page.
constexpr std::size_t kGroups = 480;
constexpr std::size_t kLeastGroups = 6, kMostGroups = 60;

/// Three decimals: a tenth of a percent of a step.
double ratio_of_steps(double step_s, double typical_s) {
  return std::round(1000 * step_s / typical_s) / 1000;
}

/// The steps of one record in at most `groups` groups; none if it has no times of steps.
Strip::Window window_of(const Record& record, const Cell& cell, std::size_t groups) {
  Strip::Window window{
      .name = fmt::format("{}, {} images{}", way_of(cell), cell.local_batch, cell.workers > 1 ? " each" : ""),
      .record = record.id,
      .mark = mark_of(measure::disturbance_of(record)),
      .seconds = record.window.wall_s,
      .typical_s = cell.step_s.median,
      .others_cores = record.window.others_cores};
  const auto steps = analysis::step_seconds(record);
  groups = std::min(groups, steps.size());
  for (std::size_t i = 0; i < groups; ++i) {
    const auto begin = steps.begin() + static_cast<std::ptrdiff_t>(i * steps.size() / groups);
    const auto end = steps.begin() + static_cast<std::ptrdiff_t>((i + 1) * steps.size() / groups);
    const std::vector<double> group(begin, end);
    window.low.push_back(ratio_of_steps(std::ranges::min(group), window.typical_s));
    window.middle.push_back(ratio_of_steps(measure::quantile(group, 0.5), window.typical_s));
    window.high.push_back(ratio_of_steps(std::ranges::max(group), window.typical_s));
  }
  return window;
}

/// Every record with times of steps, with its configuration, in the order in which they were measured.
std::vector<std::pair<const Record*, const Cell*>> windows_in_order(const analysis::CellGroup& cells) {
  std::vector<std::pair<const Record*, const Cell*>> windows;
  for (const Cell* cell : cells.cells) {
    if (!cell->is_measured() || cell->step_s.median <= 0) continue;
    for (const auto* records : {&cell->records, &cell->lost})
      for (const Record* record : *records)
        if (record->window.wall_s > 0 && !record->ranks.empty() && !analysis::step_seconds(*record).empty() &&
            !analysis::contradiction(*record))
          windows.emplace_back(record, cell);
  }
  std::ranges::stable_sort(windows, {}, [](const auto& window) { return window.first->created; });
  return windows;
}

std::string finding_of_strip(const std::vector<Strip::Window>& windows,
                             const analysis::WindowsBesideOthers& beside) {
  const std::string where = beside.all == 1 ? "" : " " + beside.text();
  std::string text;
  if (beside.disturbed > 0)
    text = "Other programs were at work" + where;
  else if (beside.unknown > 0)
    text = "It is not known whether other programs were at work" + where;
  else
    text = "No other program was at work";
  std::vector<double> steps;
  for (const auto& window : windows) steps.insert(steps.end(), window.middle.begin(), window.middle.end());
  return text + fmt::format("; nine of ten steps took {} to {} times their median",
                            number(measure::quantile(steps, 0.05)), number(measure::quantile(steps, 0.95)));
}

}  // namespace

std::optional<Strip> step_strip(const Subject& subject) {
  const auto records = windows_in_order(subject.cells);
  if (records.empty()) return std::nullopt;
  const auto groups = std::clamp(kGroups / records.size(), kLeastGroups, kMostGroups);
  Strip strip{
      .id = "step-times",
      .note =
          "Steps over the median of their configuration, window after window, beside the cores that other "
          "programs kept busy; a bar spans the fastest "
          "to the slowest of some steps."};
  analysis::WindowsBesideOthers beside;
  double begin_s = 0;
  for (const auto& [record, cell] : records) {
    beside.add(*record);
    Strip::Window window = window_of(*record, *cell, groups);
    window.begin_s = std::exchange(begin_s, begin_s + window.seconds);
    strip.windows.push_back(std::move(window));
  }
  strip.finding = finding_of_strip(strip.windows, beside);
  return strip;
}

}  // namespace paceline::report
