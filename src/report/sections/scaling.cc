#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>
#include <span>
#include <utility>

#include "analysis/compare/cell_labels.h"
#include "analysis/steps/breakdown.h"
#include "report/sections/parts.h"
#include "report/sections/sections.h"
#include "report/text.h"

namespace paceline::report {
namespace {

using analysis::Mode;
using analysis::ScalingGroup;
using analysis::ScalingRow;

constexpr const char* kWeakDefinition =
    "Weak scaling: the local batch is fixed, the global batch grows. E = t_step(1) / t_step(N); scaled "
    "speedup = N E. Epoch speedup = T_epoch(1) / T_epoch(N) over the same data (all D images, D / B steps, "
    "whatever tail a real epoch of that batch drops): it already contains the "
    "1/N and is not multiplied by N. Intervals of ratios: those of both times, joined in quadrature.";
constexpr const char* kStrongDefinition =
    "Strong scaling: the global batch is fixed, each worker's part shrinks. S = T(1) / T(N) at the same "
    "global batch; E = S / N. Epoch: all D images, D / B steps. Intervals of ratios: those of both times, "
    "joined in quadrature.";

std::vector<Column> scaling_columns(Mode mode) {
  const Column local{.key = "local_batch", .label = "local batch", .format = Format::integer};
  const Column global{.key = "global_batch", .label = "global batch", .format = Format::integer};
  std::vector<Column> result{
      mode == Mode::weak ? local : global,
      {.key = "workers", .label = "workers", .format = Format::integer},
      mode == Mode::weak ? global : local,
      {.key = "cores", .label = "cores used", .format = Format::integer},
      {.key = "step", .label = "step", .unit = "s", .format = Format::milliseconds},
      {.key = "throughput", .label = "throughput", .unit = "images/s", .format = Format::rate},
      {.key = "epoch", .label = "epoch", .unit = "s", .format = Format::seconds}};
  if (mode == Mode::weak) {
    result.push_back({.key = "efficiency", .label = "efficiency E", .format = Format::percent1});
    result.push_back({.key = "scaled_speedup", .label = "scaled speedup N E", .format = Format::fixed2});
    result.push_back({.key = "epoch_speedup", .label = "epoch speedup", .format = Format::fixed2});
  } else {
    result.push_back({.key = "speedup", .label = "speedup S", .format = Format::fixed2});
    result.push_back({.key = "efficiency", .label = "efficiency E", .format = Format::percent1});
  }
  return result;
}

/// Distinguishes a group from the others of its batch: "resnet8-cifar, threads of one process, version
/// 0.2.0"; may be empty.
std::string text_about_group(const ScalingGroup& group) {
  std::vector<std::string> said{group.subject, group.setup, group.circumstances};
  std::erase(said, "");
  return fmt::format("{}", fmt::join(said, ", "));
}

std::string why_no_ratio(const ScalingRow& row) {
  if (!row.cell->is_measured()) return row.cell->why_not_measured();
  return row.verdict.refusals.empty() ? "no baseline was measured" : row.verdict.refusals.front();
}

std::vector<TableCell> scaling_row(const ScalingGroup& group, const ScalingRow& row, Mode mode) {
  const auto& cell = *row.cell;
  const bool measured = cell.is_measured();
  const auto other = mode == Mode::weak ? cell.global_batch : cell.local_batch;
  std::vector<TableCell> cells{
      value(group.batch), value(cell.workers), value(other),
      measured ? value(analysis::cores_used(cell.record())) : missing(why_no_ratio(row))};
  const std::size_t first_figure = cells.size();
  if (measured) {
    cells.push_back(figure(cell.step_s));
    cells.push_back(figure(cell.images_per_s));
    cells.push_back(with_mark(figure(cell.epoch_s), cell.epoch_measured ? "" : "est."));
    cells.back().note = cell.epoch_basis;
  } else {
    cells.insert(cells.end(), 3, missing(why_no_ratio(row)));
  }
  const auto ratios = mode == Mode::weak ? std::vector{row.efficiency, row.speedup, row.epoch}
                                         : std::vector{row.speedup, row.efficiency};
  for (const auto& ratio : ratios)
    cells.push_back(row.has_ratios ? figure(ratio) : missing(why_no_ratio(row)));
  mark_row(cells, first_figure, marks_of(row));
  if (row.has_ratios && worst_of({&cell}) == measure::Disturbance::none)
    mark_row(cells, cells.size() - ratios.size(), short_mark_of(worst_of({group.baseline})));
  return cells;
}

Table scaling_table(const std::vector<ScalingGroup>& groups, Mode mode) {
  Table table{.id = fmt::format("scale-{}-time", name(mode)),
              .title = fmt::format("Table 1, {} scaling: time, speedup, efficiency", name(mode)),
              .definition = mode == Mode::weak ? kWeakDefinition : kStrongDefinition,
              .columns = scaling_columns(mode)};
  Footnotes footnotes;
  std::set<const analysis::Cell*> baselines, shown;  // a worker alone is the baseline of several groups
  for (const ScalingGroup& group : groups)
    if (group.baseline != nullptr && baselines.insert(group.baseline).second) {
      const std::string which = analysis::is_alone(group.baseline->record()) && group.circumstances.empty()
                                    ? group.subject
                                    : text_about_group(group);
      footnotes.add(
          fmt::format("Baseline{}{}: {}.", which.empty() ? "" : " of ", which, group.baseline_name));
    }
  std::vector<const analysis::Cell*> cells;
  for (const ScalingGroup& group : groups) {
    for (const ScalingRow& row : group.rows) {
      if (!shown.insert(row.cell).second) continue;
      cells.push_back(row.cell);
      table.rows.push_back(scaling_row(group, row, mode));
      const auto& cell = *row.cell;
      if (cell.is_measured() && !cell.epoch_measured)
        footnotes.add("est.: D / B x median step, not a measured epoch; the interval is the step's.");
      footnotes.explain(row);
      if (!cell.is_measured()) continue;
      if (const auto ledger = analysis::breakdown(cell); analysis::is_data_bound(ledger))
        footnotes.add(
            fmt::format("{}: {} of the step waits for data: the loader is measured, not the workers.",
                        cell.label, percent(ledger.mean.data_wait / ledger.mean.total())));
    }
  }
  for (const std::string& note : text_about_single_repeats(cells)) footnotes.add(note);
  add_setup_columns(table, 2, cells);
  table.footnotes = footnotes.take();
  return table;
}

/// Explains the gap to the ideal in one sentence. If the loader is the limit, the gap must not be called
/// communication.
std::string text_about_the_loss(const std::vector<ScalingGroup>& groups) {
  for (const ScalingGroup& group : groups)
    for (const ScalingRow& row : group.rows)
      if (row.has_ratios && analysis::is_data_bound(analysis::breakdown(*row.cell)))
        return "The dashed line is the ideal. The loader is the limit in some of these cells: their lines "
               "are the loader's, and what lies below the ideal must not be called communication.";
  return "The dashed line is the ideal; what lies below it is lost to communication, waiting and slower "
         "kernels.";
}

std::vector<RowOfGroup> rows_with_ratios(std::span<const ScalingGroup> groups) {
  std::vector<RowOfGroup> rows;
  for (const ScalingGroup& group : groups)
    for (const ScalingRow& row : group.rows)
      if (row.has_ratios) rows.push_back({&group, &row});
  return rows;
}

using NamedLines = std::map<std::pair<int, std::string>, std::vector<RowOfGroup>>;

/// The rows as lines of a plot, by workers, or with 0 for all of them. If a batch was measured twice with the
/// same number of workers, for example by two versions, a single line through both would be vertical. So each
/// gets its own line, and the text names it.
NamedLines named_lines(const std::vector<RowOfGroup>& rows, bool by_workers) {
  std::vector<const analysis::Cell*> cells;
  std::vector<std::pair<std::int64_t, std::int64_t>> places;
  for (const RowOfGroup& one : rows) {
    cells.push_back(one.row->cell);
    places.emplace_back(one.group->batch, one.row->cell->workers);
  }
  const auto texts = analysis::cell_labels(cells, places);
  NamedLines lines;
  for (std::size_t i = 0; i < rows.size(); ++i)
    lines[{by_workers ? cells[i]->workers : 0, texts[i]}].push_back(rows[i]);
  return lines;
}

Plot scaling_plot(const std::vector<ScalingGroup>& groups, Mode mode) {
  const bool weak = mode == Mode::weak;
  Plot plot{.id = fmt::format("{}-speedup", name(mode)),
            .title = weak ? "Scaled speedup N E against workers" : "Speedup S against workers",
            .caption = text_about_the_loss(groups),
            .x = {.label = "workers"},
            .y = {.label = weak ? "scaled speedup" : "speedup"}};
  double most = 1, fewest = 0;
  for (const ScalingGroup& group : groups)
    for (const auto& [key, rows] : named_lines(rows_with_ratios({&group, 1}), false)) {
      Series series{.name = fmt::format("{} batch {}{}{}", weak ? "local" : "global", group.batch,
                                        behind(text_about_group(group)), behind(key.second))};
      for (const auto& [of_group, row] : rows) {
        const double workers = row->cell->workers;
        most = std::max(most, workers);
        if (fewest == 0 || workers < fewest) fewest = workers;
        std::string mark = point_mark(*row->cell);
        if (mark.empty() && row->verdict.shares_cores) mark = "shared cores";
        series.points.push_back(point_of(workers, row->speedup, std::move(mark)));
      }
      plot.series.push_back(std::move(series));
    }
  if (fewest > 0)
    plot.series.insert(
        plot.series.begin(),
        Series{.name = "ideal", .points = {{fewest, 1}, {most, most / fewest}}, .dashed = true});
  return plot;
}

/// The rows of one model, each cell once.
std::vector<RowOfGroup> rows_of_subject(const std::vector<ScalingGroup>& groups, const std::string& subject) {
  auto rows = rows_with_ratios(groups);
  std::set<const analysis::Cell*> seen;
  std::erase_if(rows, [&](const RowOfGroup& one) {
    return one.group->subject != subject || !seen.insert(one.row->cell).second;
  });
  return rows;
}

/// Seconds for all training images against the batch, a line for each number of workers.
Plot epoch_plot(const std::vector<ScalingGroup>& groups, Mode mode) {
  Plot plot{.id = fmt::format("{}-epoch", name(mode)),
            .title = "Time of an epoch against batch",
            .caption = "All training images, D / B steps of the median step where no whole epoch was timed.",
            .x = {.label = fmt::format("{} batch", mode == Mode::weak ? "local" : "global"),
                  .unit = "images",
                  .log = true},
            .y = {.label = "epoch", .unit = "s"}};
  std::set<std::string> subjects;
  for (const ScalingGroup& group : groups) subjects.insert(group.subject);
  long left_out = 0;
  for (const std::string& subject : subjects)
    for (const auto& [key, line] : named_lines(rows_of_subject(groups, subject), true)) {
      const auto& first = line.front().row->cell->record();
      Series series{.name = workers_on_cores(*line.front().row->cell) + behind(subject) + behind(key.second)};
      for (const auto& [group, row] : line) {
        // All points of a line have the same settings.
        if (!analysis::compare(first, row->cell->record(), analysis::Topic::tables).comparable()) {
          ++left_out;
          continue;
        }
        series.points.push_back(
            point_of(static_cast<double>(group->batch), row->cell->epoch_s, point_mark(*row->cell)));
      }
      plot.series.push_back(std::move(series));
    }
  if (left_out > 0)
    plot.caption +=
        fmt::format(" Left out, since it cannot be compared with the first of its line: {} of the table.",
                    counted(left_out, "row"));
  return plot;
}

/// What makes a slowdown doubtful: "more worker threads than cores; two repeats".
std::string doubts(const analysis::Cell& cell, const analysis::Cell& before) {
  std::vector<std::string> all;
  if (cell.oversubscribed) all.emplace_back(cell.shares());
  if (auto doubt = doubts_about({&cell, &before}); !doubt.empty()) all.push_back(std::move(doubt));
  return fmt::format("{}", fmt::join(all, "; "));
}

/// States whether more workers ever made it slower. If one of the two has few repeats, its interval is over
/// steps only and says little about another run.
void remark_slower(std::vector<Block>& blocks, const ScalingGroup& group, Mode mode) {
  for (const auto& [key, rows] : named_lines(rows_with_ratios({&group, 1}), false)) {
    const analysis::Cell* before = nullptr;
    for (const RowOfGroup& one : rows) {
      const analysis::Cell& cell = *one.row->cell;
      const bool is_more = before != nullptr && cell.workers > before->workers;
      // The rate of a disturbed cell is a lower bound.
      const bool is_known = worst_of({&cell}) == measure::Disturbance::none;
      if (is_more && cell.images_per_s.high < before->images_per_s.low)
        blocks.push_back((is_known ? warning : plain)(
            fmt::format("{} {} slower than {} at {} batch {}{}: {} against {} images/s{}.{}",
                        counted(cell.workers, "worker"), is_known ? "are" : "seemed", before->workers,
                        mode == Mode::weak ? "local" : "global", group.batch,
                        behind(text_about_group(group)) + behind(key.second),
                        number(cell.images_per_s.median), number(before->images_per_s.median),
                        in_brackets(doubts(cell, *before)), text_about_emulation(cell))));
      before = &cell;
    }
  }
}

}  // namespace

std::optional<Section> scaling_section(const Conclusions& conclusions, Mode mode) {
  const auto& groups = conclusions.scaling(mode);
  if (groups.empty()) return std::nullopt;
  Section section{.id = fmt::format("{}-scaling", name(mode)),
                  .title = mode == Mode::weak ? "How many workers? Weak scaling: local batch fixed"
                                              : "How many workers? Strong scaling: global batch fixed"};
  section.blocks.push_back(scaling_table(groups, mode));
  for (const ScalingGroup& group : groups) remark_slower(section.blocks, group, mode);
  Plot speedup = scaling_plot(groups, mode);
  const auto is_line = [](const Series& series) { return !series.dashed && series.points.size() > 1; };
  if (std::ranges::any_of(speedup.series, is_line)) section.blocks.push_back(std::move(speedup));
  Plot epoch = epoch_plot(groups, mode);
  if (std::ranges::any_of(epoch.series, is_line)) section.blocks.push_back(std::move(epoch));
  return section;
}

}  // namespace paceline::report
