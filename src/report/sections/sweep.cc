#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <utility>

#include "analysis/compare/cell.h"
#include "analysis/compare/cell_labels.h"
#include "report/sections/parts.h"
#include "report/sections/sections.h"
#include "report/text.h"

namespace paceline::report {
namespace {

using analysis::Limit;
using analysis::Sweep;
using analysis::SweepPoint;

/// The continuation of "not decided: ", such as "8 and 512 overlap; measure longer"; empty if the knee is
/// decided.
std::string knee_not_decided(const Sweep& sweep) {
  if (sweep.undecided.empty()) return {};
  std::vector<std::string> batches;
  for (const std::size_t i : sweep.undecided)
    batches.push_back(std::to_string(sweep.points[i].cell->local_batch));
  const bool any_single = std::ranges::any_of(
      sweep.undecided, [&](std::size_t i) { return !analysis::has_interval(sweep.points[i].cell->step_s); });
  return fmt::format("{} {}; measure longer", listed(batches),
                     any_single ? "overlap or were timed by too few steps" : "overlap");
}

/// doubts_about() the batches among which the knee was chosen.
std::string text_about_doubts(const Sweep& sweep) {
  std::vector<const analysis::Cell*> compared;
  for (const SweepPoint& point : sweep.points)
    if (point.on_curve) compared.push_back(point.cell);
  return doubts_about(compared);
}

std::string remark_of(const Sweep& sweep, std::size_t i) {
  const SweepPoint& point = sweep.points[i];
  switch (point.limit) {
    case Limit::none:
      break;
    case Limit::memory:
      return "memory ends";
    case Limit::data:
      return "data ends";
    case Limit::not_timed:
      if (point.cell->local_batch != sweep.largest_that_fits) return "not timed";
      return sweep.largest_met == Limit::data ? "largest: the data's end" : "largest that fits";
    case Limit::failed:
      return "failed";
  }
  if (sweep.on_curve == 1 && point.on_curve) return "the only one";
  const auto& rivals = sweep.undecided;
  std::string text;
  if (sweep.knee == i)
    text = rivals.empty() ? "knee" : "knee, not decided";
  else if (std::ranges::find(rivals, i) != rivals.end())
    text = "or knee";
  if (sweep.best == i) text += text.empty() ? "best" : ", best";
  if (!point.on_curve) text = "not compared";
  return text;
}

std::vector<TableCell> sweep_row(const Sweep& sweep, std::size_t i) {
  const SweepPoint& point = sweep.points[i];
  const auto& cell = *point.cell;
  std::vector<TableCell> row{value(cell.local_batch),
                             cell.is_measured()
                                 ? value(analysis::cores_used(cell.record()))
                                 : missing(cell.reason.empty() ? remark_of(sweep, i) : cell.reason),
                             words(remark_of(sweep, i))};
  if (point.limit == Limit::none) {
    const auto parts = analysis::breakdown(cell).mean;
    row.push_back(figure(cell.step_s));
    row.push_back(figure(cell.images_per_s));
    const auto flops = static_cast<double>(cell.record().model.training_flops);
    row.push_back(flops > 0 ? value(cell.images_per_s.median * flops / 1e9) : missing("FLOPs not counted"));
    row.push_back(with_mark(figure(cell.epoch_s), cell.epoch_measured ? "" : "est."));
    row.push_back(point.on_curve
                      ? value(cell.images_per_s.median / sweep.points[*sweep.best].cell->images_per_s.median)
                      : missing("not comparable with the other points"));
    row.push_back(value(parts.compute() / parts.total()));
    row.push_back(value(parts.data_wait / parts.total()));
  } else {
    row.insert(row.end(), 7, missing(cell.reason.empty() ? remark_of(sweep, i) : cell.reason));
  }
  mark_row(row, 3, marks_of(cell));
  row.push_back(point.plan_bytes > 0 ? value(point.plan_bytes) : missing("no plan"));
  row.push_back(value(point.peak_bytes, "not measured"));
  row.push_back(value(point.peak_over_plan, "not measured"));
  return row;
}

/// "2 workers", "2 workers, resnet8-cifar, threads of one process".
std::string name_of_sweep(const Sweep& sweep) {
  return counted(sweep.workers, "worker") + behind(sweep.subject) + behind(sweep.setup);
}

Table sweep_table(const Sweep& sweep, const std::string& id) {
  Table table{
      .id = id,
      .title = fmt::format("Throughput against batch, {}", name_of_sweep(sweep)),
      .definition =
          "Throughput = global batch / median step. The knee is the smallest batch within 5 % of the best "
          "throughput; it is not decided where an interval of the ratio of throughputs holds 95 %. GFLOP/s = "
          "throughput x multiplications and additions of one trained sample (convolutions and dense layers, "
          "forward and backward). Epoch: all training images, D / B steps, also those of the tail that a "
          "real epoch drops. In use: the part of a step that computes forward, backward and update. Cores: that the workers' threads could use. Plan: bytes computed before the "
          "run; peak: resident memory measured.",
      .columns = {{.key = "local_batch",
                   .label = sweep.workers == 1 ? "batch" : "local batch",
                   .format = Format::integer},
                  {.key = "cores", .label = "cores", .format = Format::integer},
                  {.key = "remark", .label = "remark"},
                  {.key = "step", .label = "step", .unit = "s", .format = Format::milliseconds},
                  {.key = "throughput", .label = "throughput", .unit = "images/s", .format = Format::rate},
                  {.key = "gflop_per_s", .label = "achieved", .unit = "GFLOP/s", .format = Format::rate},
                  {.key = "epoch", .label = "epoch", .unit = "s", .format = Format::seconds},
                  {.key = "of_best", .label = "of the best", .format = Format::percent1},
                  {.key = "in_use", .label = "in use", .format = Format::percent1},
                  {.key = "data_wait", .label = "data wait", .format = Format::percent1},
                  {.key = "plan", .label = "memory plan", .unit = "B", .format = Format::bytes},
                  {.key = "peak", .label = "memory peak", .unit = "B", .format = Format::bytes},
                  {.key = "peak_over_plan", .label = "peak / plan", .format = Format::percent1}}};
  Footnotes footnotes;
  if (const std::string open = knee_not_decided(sweep); !open.empty())
    footnotes.add(fmt::format("Knee not decided: {}{}.", open, in_brackets(text_about_doubts(sweep))));
  else if (const std::string doubts = text_about_doubts(sweep); !doubts.empty() && sweep.on_curve > 1)
    footnotes.add(fmt::format("Doubts about the knee: {}.", doubts));
  std::vector<const analysis::Cell*> cells;
  for (const SweepPoint& point : sweep.points) cells.push_back(point.cell);
  for (const std::string& note : text_about_single_repeats(cells)) footnotes.add(note);
  for (std::size_t i = 0; i < sweep.points.size(); ++i) {
    const SweepPoint& point = sweep.points[i];
    table.rows.push_back(sweep_row(sweep, i));
    footnotes.explain(*point.cell);
    if (point.cell->is_measured() && !point.cell->epoch_measured)
      footnotes.add("est.: D / B x median step, not a measured epoch.");
    for (const auto& refusal : point.verdict.refusals)
      footnotes.add(fmt::format("batch {}: not on the curve: {}.", point.cell->local_batch, refusal));
    for (const auto& remark : point.verdict.remarks)
      footnotes.add(fmt::format("batch {}: {}.", point.cell->local_batch, remark));
  }
  add_setup_columns(table, 1, cells);
  table.footnotes = footnotes.take();
  return table;
}

/// Lines of throughput and of the time of an epoch; of a batch with two rates two lines each.
void append_lines(const Sweep& sweep, std::vector<Series>& rates, std::vector<Series>& epochs) {
  std::vector<const analysis::Cell*> cells;
  std::vector<std::pair<std::int64_t, std::int64_t>> places;
  for (const SweepPoint& point : sweep.points) {
    if (!point.on_curve) continue;
    cells.push_back(point.cell);
    places.emplace_back(point.cell->local_batch, 0);
  }
  const auto apart = analysis::cell_labels(cells, places);
  const auto begin = static_cast<std::ptrdiff_t>(rates.size());
  std::size_t at = 0;
  for (std::size_t i = 0; i < sweep.points.size(); ++i) {
    if (!sweep.points[i].on_curve) continue;
    const auto& cell = *sweep.points[i].cell;
    const std::string name = workers_on_cores(cell) + behind(sweep.setup) + behind(apart[at++]);
    const auto line = [&](std::vector<Series>& all) -> Series& {
      const auto found = std::ranges::find(all.begin() + begin, all.end(), name, &Series::name);
      return found != all.end() ? *found : all.emplace_back(Series{.name = name});
    };
    std::string mark = point_mark(cell);
    if (mark.empty() && sweep.knee == i) mark = sweep.undecided.empty() ? "knee" : "knee, not decided";
    const auto batch = static_cast<double>(cell.local_batch);
    line(rates).points.push_back(point_of(batch, cell.images_per_s, mark));
    line(epochs).points.push_back(point_of(batch, cell.epoch_s, mark));
  }
}

/// "The knee is at 64 (one repeat)."; `where`: " on 2 workers".
std::string text_about_the_knee(const Sweep& sweep, const std::string& where) {
  if (sweep.undecided.empty())
    return fmt::format("The knee{} is at {}{}.", where, sweep.points[*sweep.knee].cell->local_batch,
                       in_brackets(text_about_doubts(sweep)));
  return fmt::format("The knee{} is not decided: {}{}.", where, knee_not_decided(sweep),
                     in_brackets(text_about_doubts(sweep)));
}

/// The sweeps of one model share axes; images/s of different models cannot be compared.
void append_plots(std::vector<Block>& blocks, std::span<const Sweep> sweeps, const std::string& subject,
                  const std::string& behind_id) {
  std::vector<Series> rates, epochs;
  std::vector<std::string> knees;
  const auto number = std::ranges::count(sweeps, subject, &Sweep::subject);
  for (const Sweep& sweep : sweeps) {
    if (sweep.subject != subject) continue;
    append_lines(sweep, rates, epochs);
    if (sweep.on_curve > 1)
      knees.push_back(text_about_the_knee(
          sweep,
          number == 1 ? "" : fmt::format(" on {}{}", counted(sweep.workers, "worker"), behind(sweep.setup))));
  }
  if (knees.empty()) return;
  const bool is_local = std::ranges::any_of(
      sweeps, [&](const Sweep& sweep) { return sweep.subject == subject && sweep.workers > 1; });
  const Axis batch{.label = is_local ? "local batch" : "batch", .unit = "images", .log = true};
  blocks.push_back(Plot{.id = "sweep-throughput" + behind_id,
                        .title = "Throughput against batch" + behind(subject),
                        .caption = fmt::format("{}", fmt::join(knees, " ")),
                        .x = batch,
                        .y = {.label = "throughput", .unit = "images/s"},
                        .series = std::move(rates)});
  blocks.push_back(Plot{.id = "sweep-epoch" + behind_id,
                        .title = "Time of an epoch against batch" + behind(subject),
                        .caption = "The same figures as seconds for all training images (D / B steps).",
                        .x = batch,
                        .y = {.label = "epoch", .unit = "s"},
                        .series = std::move(epochs)});
}

}  // namespace

std::optional<Section> sweep_section(const Conclusions& conclusions) {
  const auto& sweeps = conclusions.sweeps;
  if (sweeps.empty()) return std::nullopt;
  Section section{.id = "sweep", .title = "Which batch size?"};
  const auto behind_id = [](std::size_t i) { return i == 0 ? std::string() : fmt::format("-{}", i + 1); };
  for (std::size_t i = 0; i < sweeps.size(); ++i)
    section.blocks.push_back(sweep_table(sweeps[i], "sweep" + behind_id(i)));
  for (std::size_t i = 0; i < conclusions.subjects.size(); ++i)
    append_plots(section.blocks, sweeps, conclusions.subjects[i].name, behind_id(i));
  return section;
}

}  // namespace paceline::report
