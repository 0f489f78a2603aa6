#include "analysis/steps/breakdown.h"
#include "analysis/compare/cell_labels.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "report/sections/parts.h"
#include "report/sections/sections.h"
#include "report/text.h"

namespace paceline::report {
namespace {

using analysis::Breakdown;
using analysis::Parts;
using analysis::Residual;
using analysis::ScalingGroup;
using analysis::ScalingRow;

constexpr const char* kLedgerDefinition =
    "Milliseconds of one training step, mean over ranks and over all measured steps (means add up, medians "
    "do not). Compute = forward + backward + update; in use: compute as a part of the step (the utilisation "
    "of the device). Communication total: from posting to completion of the all-reduces; exposed = transfer "
    "+ wait: what the step could not hide; overlapped = total - exposed, at least 0 (a rank that is woken "
    "late, ‡, is exposed for longer than its communication took). Transfer is the shortest duration over "
    "ranks of the same collective, the rest is waiting for a later rank. Step = compute + exposed transfer "
    "+ wait for a rank + data wait + copy and other. Closure: sum of the ledger over the wall time, which "
    "is measured separately, of the worst rank. Intervals: the extremes of the repeats. Imbalance: own work "
    "of the slowest rank over the mean, less 1.";

constexpr const char* kResidualDefinition =
    "Seconds of an epoch over the same data, by the ledger: all D images, D / B steps, whatever tail a real "
    "epoch of that batch drops. Residual = T(N) - T(1)/N. It is an estimate that also holds data wait, "
    "imbalance and slower kernels, so it is not communication time. Beside it stand its exact split (each "
    "part: that phase with N workers less the same phase of the baseline over N) and the measured "
    "communication.";

/// A figure of a step with the extremes of its repeats.
template <typename Get>
TableCell part(const Breakdown& ledger, Get get) {
  TableCell cell = value(get(ledger.mean));
  if (ledger.repeats.size() < 2) return cell;
  std::vector<double> repeats;
  for (const Parts& parts : ledger.repeats) repeats.push_back(get(parts));
  const auto [low, high] = std::minmax_element(repeats.begin(), repeats.end());
  if (*low == *high) return cell;  // without spread no extremes are shown
  cell.low = *low;
  cell.high = *high;
  return cell;
}

TableCell communication_part(const Breakdown& ledger) {
  TableCell cell = value(ledger.communication_total);
  const auto& repeats = ledger.communication_repeats;
  if (repeats.size() < 2 || ledger.communication_total == 0) return cell;
  cell.low = *std::min_element(repeats.begin(), repeats.end());
  cell.high = *std::max_element(repeats.begin(), repeats.end());
  return cell;
}

/// A row of the table, with its breakdown; `row` is null for cells outside a scaling group.
struct BreakdownLine {
  std::int64_t batch = 0;
  std::string label;  ///< in plots: "b 128, N 2", for a global batch "B 128, N 2"
  const analysis::Cell* cell = nullptr;
  const ScalingRow* row = nullptr;
};

Table ledger_table(const std::string& id, const std::string& title, const std::string& batch_label,
                   const std::vector<BreakdownLine>& lines) {
  Table table{.id = id,
              .title = title,
              .definition = kLedgerDefinition,
              .columns = {{.key = "batch", .label = batch_label, .format = Format::integer},
                          {.key = "workers", .label = "workers", .format = Format::integer},
                          in_ms("step", "step"),
                          in_ms("compute", "compute"),
                          {.key = "in_use", .label = "in use", .format = Format::percent1},
                          in_ms("communication", "comm. total"),
                          in_ms("exposed_transfer", "exposed transfer"),
                          in_ms("wait_for_rank", "wait for a rank"),
                          in_ms("overlapped", "overlapped"),
                          in_ms("data_wait", "data wait"),
                          in_ms("other", "copy, other"),
                          {.key = "imbalance", .label = "imbalance", .format = Format::percent1},
                          {.key = "closure", .label = "closure", .format = Format::percent1}}};
  Footnotes footnotes;
  // Least and most, in seconds per step.
  std::pair<double, double> late{std::numeric_limits<double>::infinity(), 0};
  for (const BreakdownLine& line : lines) {
    const Breakdown ledger = analysis::breakdown(*line.cell);
    const auto& mean = ledger.mean;
    std::vector<TableCell> row{value(line.batch),
                               value(line.cell->workers),
                               part(ledger, [](const Parts& p) { return p.total(); }),
                               part(ledger, [](const Parts& p) { return p.compute(); }),
                               value(mean.compute() / mean.total()),
                               communication_part(ledger),
                               part(ledger, [](const Parts& p) { return p.exposed_transfer; }),
                               part(ledger, [](const Parts& p) { return p.exposed_wait; }),
                               value(ledger.overlapped),
                               part(ledger, [](const Parts& p) { return p.data_wait; }),
                               value(mean.copy + mean.other),
                               value(ledger.imbalance),
                               value(ledger.closure)};
    if (line.cell->workers > 1)
      row[11].note = fmt::format("rank {} works {} a step, the mean is {}", ledger.slowest_rank,
                                 duration(ledger.slowest.total() - ledger.slowest.exposed()),
                                 duration(mean.total() - mean.exposed()));
    row[1] = with_mark(std::move(row[1]), line.row != nullptr ? marks_of(*line.row) : marks_of(*line.cell));
    table.rows.push_back(std::move(row));
    if (line.row != nullptr)
      footnotes.explain(*line.row);
    else
      footnotes.explain(*line.cell);
    if (ledger.woken_late > 0) {
      table.rows.back()[5] = with_mark(std::move(table.rows.back()[5]), "‡");
      late = {std::min(late.first, ledger.woken_late), std::max(late.second, ledger.woken_late)};
    }
    if (ledger.outside_steps > 0)
      footnotes.add(fmt::format("{}: evaluation and checkpoints took {} more in the whole window.",
                                line.cell->label, duration(ledger.outside_steps)));
  }
  if (late.second > 0)
    footnotes.add(fmt::format(
        "‡ exposed transfer and wait exceed the communication's own time, by {}{} a step: it was complete, "
        "but the rank was not running.",
        late.first < late.second ? duration(late.first) + " to " : "", duration(late.second)));
  std::vector<const analysis::Cell*> cells;
  for (const BreakdownLine& line : lines) cells.push_back(line.cell);
  add_setup_columns(table, 2, cells);
  table.footnotes = footnotes.take();
  return table;
}

Plot ledger_plot(const std::string& id, const std::string& title, const std::vector<BreakdownLine>& lines) {
  Plot plot{.id = id,
            .kind = PlotKind::stacked_bar,
            .title = title,
            .caption =
                "What a step is made of, mean over ranks: shares of the step, whose time stands at the "
                "end of the bar.",
            .x = {.label = "cell (b local, B global batch, N workers)"},
            .y = {.label = "time of a step", .unit = "s"}};
  const char* const names[] = {"forward",         "backward",  "update",     "exposed transfer",
                               "wait for a rank", "data wait", "copy, other"};
  for (const char* phase : names) plot.series.push_back({.name = phase});
  for (const BreakdownLine& line : lines) {
    const auto parts = analysis::breakdown(*line.cell).mean;
    const double values[] = {parts.forward,           parts.backward,     parts.update,
                             parts.exposed_transfer,  parts.exposed_wait, parts.data_wait,
                             parts.copy + parts.other};
    for (std::size_t i = 0; i < std::size(values); ++i)
      plot.series[i].points.push_back(
          {.x = static_cast<double>(plot.categories.size()), .y = values[i], .mark = point_mark(*line.cell)});
    plot.categories.push_back(line.label);
  }
  return plot;
}

std::optional<Table> residual_table(const std::string& id, const std::string& title,
                                    const std::string& batch_label, const std::vector<ScalingGroup>& groups) {
  const auto in_s = [](const char* key, const char* label) {
    return Column{.key = key, .label = label, .unit = "s", .format = Format::fixed2};
  };
  Table table{.id = id,
              .title = title,
              .definition = kResidualDefinition,
              .columns = {{.key = "batch", .label = batch_label, .format = Format::integer},
                          {.key = "workers", .label = "workers", .format = Format::integer},
                          in_s("epoch", "T(N)"),
                          in_s("baseline_share", "T(1)/N"),
                          in_s("residual", "residual"),
                          in_s("exposed_transfer", "exposed transfer"),
                          in_s("wait_for_rank", "wait for a rank"),
                          in_s("data_wait", "data wait"),
                          in_s("slower_kernels", "slower kernels"),
                          in_s("rest", "copy, other"),
                          in_s("communication", "comm. measured")}};
  Footnotes footnotes;
  std::vector<const analysis::Cell*> shown;
  for (const ScalingGroup& group : groups) {
    if (group.baseline == nullptr) continue;
    const Breakdown baseline = analysis::breakdown(*group.baseline);
    const bool is_data_bound = analysis::is_data_bound(baseline);
    for (const ScalingRow& row : group.rows) {
      if (row.is_baseline || !row.has_ratios) continue;
      const Residual split = analysis::residual(baseline, analysis::breakdown(*row.cell));
      std::vector<TableCell> cells{value(group.batch),
                                   value(row.cell->workers),
                                   value(split.epoch_s),
                                   value(split.epoch_s - split.residual_s),
                                   value(split.residual_s),
                                   value(split.exposed_transfer_s),
                                   value(split.waiting_s),
                                   value(split.data_wait_s),
                                   value(split.slower_kernels_s),
                                   value(split.rest_s),
                                   value(split.communication_s)};
      cells[1] = with_mark(std::move(cells[1]), marks_of(row));
      if (is_data_bound) cells[4] = with_mark(std::move(cells[4]), "data-bound");
      table.rows.push_back(std::move(cells));
      shown.push_back(row.cell);
      footnotes.explain(row);
      if (const auto few = fewest_repeats({group.baseline, row.cell}); !few.empty())
        footnotes.add(
            fmt::format("{} against its baseline: {}; another run may split the residual otherwise.",
                        row.cell->label, few));
      if (is_data_bound)
        footnotes.add(fmt::format(
            "data-bound: the baseline at batch {} waits for data {} of its step, its loader could give {} "
            "images/s; the residual must not be called communication.",
            group.batch, percent(baseline.mean.data_wait / baseline.mean.total()),
            baseline.loader_images_per_s > 0 ? number(baseline.loader_images_per_s)
                                             : "an unknown number of"));
    }
  }
  if (table.rows.empty()) return std::nullopt;
  add_setup_columns(table, 2, shown);
  table.footnotes = footnotes.take();
  return table;
}

std::vector<BreakdownLine> breakdown_lines_of(const std::vector<ScalingGroup>& groups, analysis::Mode mode) {
  std::vector<BreakdownLine> lines;
  std::vector<const analysis::Cell*> cells;
  std::vector<std::pair<std::int64_t, std::int64_t>> places;
  for (const ScalingGroup& group : groups)
    for (const ScalingRow& row : group.rows) {
      // A single worker can be the baseline of several groups.
      if (!row.cell->is_measured() || std::ranges::find(cells, row.cell) != cells.end()) continue;
      lines.push_back({.batch = group.batch,
                       .label = fmt::format("{} {}, N {}", mode == analysis::Mode::weak ? 'b' : 'B',
                                            group.batch, row.cell->workers),
                       .cell = row.cell,
                       .row = &row});
      cells.push_back(row.cell);
      places.emplace_back(group.batch, row.cell->workers);
    }
  const auto apart = analysis::cell_labels(cells, places);
  for (std::size_t i = 0; i < lines.size(); ++i)
    if (!apart[i].empty()) lines[i].label += ", " + apart[i];
  return lines;
}

/// Lines for trainings that are in no scaling group.
std::vector<BreakdownLine> single_lines(const Conclusions& conclusions) {
  std::vector<BreakdownLine> lines;
  for (const auto& cell : conclusions.cells)
    if (cell.kind == "train" && cell.is_measured() && !conclusions.is_scaled(cell))
      lines.push_back({.batch = cell.local_batch, .label = cell.label, .cell = &cell, .row = nullptr});
  return lines;
}

void append_mode(std::vector<Block>& blocks, const Conclusions& conclusions, analysis::Mode mode) {
  const auto& groups = conclusions.scaling(mode);
  const auto lines = breakdown_lines_of(groups, mode);
  if (lines.empty()) return;
  const std::string word = name(mode);
  const std::string batch = mode == analysis::Mode::weak ? "local batch" : "global batch";
  blocks.push_back(ledger_table("scale-" + word + "-ledger",
                                fmt::format("Table 2, {} scaling: the ledger of a step", word), batch,
                                lines));
  blocks.push_back(
      ledger_plot(word + "-ledger", fmt::format("The ledger of a step, {} scaling", word), lines));
  add_block(blocks,
            residual_table(
                "scale-" + word + "-residual",
                fmt::format("Table 2, {} scaling: the estimate T(N) - T(1)/N and what explains it", word),
                batch, groups));
}

}  // namespace

std::optional<Section> breakdown_section(const Conclusions& conclusions) {
  Section section{.id = "breakdown", .title = "Where does the time go?"};
  append_mode(section.blocks, conclusions, analysis::Mode::weak);
  append_mode(section.blocks, conclusions, analysis::Mode::strong);
  const auto singles = single_lines(conclusions);
  if (!singles.empty()) {
    section.blocks.push_back(ledger_table("ledger", "The ledger of a step", "local batch", singles));
    section.blocks.push_back(ledger_plot("ledger-plot", "The ledger of a step", singles));
  }
  add_block(section.blocks, loader_warning(conclusions));
  add_block(section.blocks, loader_table(conclusions));
  if (section.blocks.empty()) return std::nullopt;
  return section;
}

}  // namespace paceline::report
