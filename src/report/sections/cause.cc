#include "analysis/steps/cause.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "report/sections/parts.h"
#include "report/sections/sections.h"
#include "report/text.h"

namespace paceline::report {
namespace {

using analysis::BatchSeries;
using analysis::Cause;
using analysis::CausePart;
using analysis::Reach;

constexpr const char* kCauseDefinition =
    "Steps an epoch: training images over the global batch. Without data loading: the epoch less the part "
    "of its steps that waits for the loader. Intensity: floating-point operations a byte, where each op "
    "reads its inputs and writes its output once, and a step its weights, gradients and optimizer state "
    "(fused ops move less). Computed: multiplications and additions of the direct form over the time of forward and "
    "backward; Winograd does fewer, so this rate may be above what the cores can do. Memory: those bytes over the "
    "time of all computing; caches serve a part of them. No share of a peak is given for that reason. Bound: by the "
    "intensity, beside the rates of a matrix product in the caches and a copy of 128 MB, measured before the run "
    "with all cores; either: it depends on how many operations the algorithms save.";

TableCell cell_in_unit(const std::optional<double>& number, double unit, const char* reason) {
  return number ? value(*number / unit) : missing(reason);
}

std::string name_of_bound(analysis::Bound bound) {
  return std::string(word_of<analysis::Bound::either>(bound, {"arithmetic", "memory", "either"}));
}

std::vector<TableCell> reach_row(const Reach& reach) {
  constexpr const char* kNoFlops = "FLOPs not counted";
  constexpr const char* kNoBytes = "bytes not counted";
  const auto& cell = *reach.cell;
  const char* const no_bound =
      analysis::is_of_cuda_engine(cell.record()) ? "product and copy are measured on processors only"
      : analysis::processes(cell.record()) > 1   ? "product and copy were measured on the cores of process 0"
      : reach.product_flops_per_s ? "other programs slowed the product that was measured before the run"
                                  : "no product was measured before the run";
  const auto bound = reach.bound();
  std::vector<TableCell> row{words(cell.part()),
                             value(cell.local_batch),
                             value(cell.workers),
                             value(reach.cell->full_steps()),
                             with_mark(figure(cell.epoch_s), cell.epoch_measured ? "" : "est."),
                             with_mark(figure(reach.epoch_without_data_s), cell.epoch_measured ? "" : "est."),
                             cell_in_unit(reach.intensity, 1, kNoBytes),
                             cell_in_unit(reach.flops_per_s, 1e9, kNoFlops),
                             cell_in_unit(reach.bytes_per_s, 1e9, kNoBytes),
                             bound ? words(name_of_bound(*bound)) : missing(no_bound)};
  mark_row(row, 3, marks_of(cell));
  return row;
}

Table reach_table(const std::vector<BatchSeries>& all) {
  Table table{
      .id = "cause",
      .title = "What the steps compute and move",
      .definition = kCauseDefinition,
      .columns = {
          {.key = "cell", .label = "cell"},
          {.key = "local_batch", .label = "batch", .format = Format::integer},
          {.key = "workers", .label = "workers", .format = Format::integer},
          {.key = "steps", .label = "steps an epoch", .format = Format::integer},
          {.key = "epoch", .label = "epoch", .unit = "s", .format = Format::seconds},
          {.key = "without_data", .label = "without data loading", .unit = "s", .format = Format::seconds},
          {.key = "intensity", .label = "intensity", .unit = "FLOP/B", .format = Format::fixed1},
          {.key = "gflop_per_s", .label = "computed", .unit = "GFLOP/s", .format = Format::rate},
          {.key = "gb_per_s", .label = "memory", .unit = "GB/s", .format = Format::rate},
          {.key = "bound", .label = "bound by"}}};
  Footnotes footnotes;
  std::vector<const analysis::Cell*> cells;
  for (const BatchSeries& series : all)
    for (const Reach& reach : series.batches) {
      cells.push_back(reach.cell);
      table.rows.push_back(reach_row(reach));
      footnotes.explain_marks(*reach.cell);
      if (!reach.cell->epoch_measured) footnotes.add("est.: D / B x median step, not a measured epoch.");
      if (const auto& peak = reach.cell->record().peak)
        footnotes.add(fmt::format("Before the run {} gave {} GFLOP/s in a {} product and {} GB/s in a copy.",
                                  counted(peak->threads, "thread"), number(peak->flops_per_s / 1e9),
                                  peak->precision, number(peak->bytes_per_s / 1e9)));
    }
  add_setup_columns(table, 3, cells);
  table.footnotes = footnotes.take();
  return table;
}

Table ledger_table_of_series(const std::vector<BatchSeries>& all) {
  Table table{.id = "sweep-ledger",
              .title = "Ledger of the sweep's steps",
              .definition =
                  "Every second of a step on one line, means over steps, ranks and repeats: they add up "
                  "to the mean step. An image: the step over the local batch.",
              .columns = {{.key = "local_batch", .label = "batch", .format = Format::integer},
                          {.key = "workers", .label = "workers", .format = Format::integer},
                          in_ms("step", "step"),
                          in_ms("forward", "forward"),
                          in_ms("backward", "backward"),
                          in_ms("update", "update"),
                          in_ms("exposed", "communication"),
                          in_ms("data_wait", "data wait"),
                          in_ms("copy", "copy"),
                          in_ms("other", "other"),
                          in_ms("image", "an image")}};
  Footnotes footnotes;
  std::vector<const analysis::Cell*> cells;
  for (const BatchSeries& series : all)
    for (const Reach& reach : series.batches) {
      if (!reach.cell->is_in_sweep) continue;
      cells.push_back(reach.cell);
      const auto& parts = reach.ledger.mean;
      table.rows.push_back({value(reach.cell->local_batch), value(reach.cell->workers), value(parts.total()),
                            value(parts.forward), value(parts.backward), value(parts.update),
                            value(parts.exposed()), value(parts.data_wait), value(parts.copy),
                            value(parts.other),
                            value(parts.total() / static_cast<double>(reach.cell->local_batch))});
      mark_row(table.rows.back(), 2, marks_of(*reach.cell));
      footnotes.explain_marks(*reach.cell);
    }
  add_setup_columns(table, 2, cells);
  table.footnotes = footnotes.take();
  return table;
}

/// ", which compute at 48 instead of 37 GFLOP/s": where it is known.
std::string at_which_rate(const Cause& cause) {
  const auto before = cause.from->flops_per_s, after = cause.to->flops_per_s;
  if (!before || !after) return "";
  return fmt::format(", which compute at {} instead of {} GFLOP/s (direct form)", number(*after / 1e9),
                     number(*before / 1e9));
}

/// Names a part of the change, and why it depends on the batch.
std::string text_about_part(const Cause& cause, const Cause::Part& part) {
  const double times =
      static_cast<double>(cause.to->cell->local_batch) / static_cast<double>(cause.from->cell->local_batch);
  const double share = part.saved_s() / (cause.before_s - cause.after_s);
  std::string text = percent(share) + " of it ";
  switch (part.part) {
    case CausePart::forward_and_backward:
      return text + "in forward and backward" + at_which_rate(cause);
    case CausePart::update:
      return text +
             fmt::format("in the update, which is made once a step, for {} times the images", amount(times));
    case CausePart::communication:
      return text + fmt::format("in communication, whose bytes a step stay the same for {} times the images",
                                amount(times));
    case CausePart::data_wait:
      return text + "in waiting for data";
    case CausePart::other:
      return text + "in what each step costs beside its work";
  }
  return text;
}

/// The main parts of the change: at most two, always including the first.
std::string main_parts(const Cause& cause) {
  constexpr double kWorthNaming = 0.15;
  std::vector<std::string> parts{text_about_part(cause, cause.parts[0])};
  if (cause.parts[1].saved_s() / (cause.before_s - cause.after_s) >= kWorthNaming)
    parts.push_back(text_about_part(cause, cause.parts[1]));
  return fmt::format("{}", fmt::join(parts, "; "));
}

/// What limits the steps of the fastest batch: its largest part.
std::string what_is_left(const Reach& reach) {
  const auto& parts = reach.ledger.mean;
  const double computing = (parts.forward + parts.backward) / parts.total();
  std::string text =
      fmt::format("forward and backward, which grow with the images, are {} of its step", percent(computing));
  if (reach.flops_per_s)
    text += fmt::format(", at {} GFLOP/s (direct form)", number(*reach.flops_per_s / 1e9));
  if (reach.bound() == analysis::Bound::memory) text += ", and at this intensity the memory bounds them";
  return text;
}

std::string batches(const Cause& cause) {
  return fmt::format("batch {} to {}", cause.from->cell->local_batch, cause.to->cell->local_batch);
}

std::string setup_of(const analysis::Cell& cell) {
  return fmt::format("{}, {}", cell.part(), workers_on_cores(cell));
}

/// "an image takes 18.2 ms instead of 30.0 ms (one repeat)". The times are a step divided by the local batch;
/// with several workers each processes its own images meanwhile.
std::string times_of_cause(const Cause& cause) {
  return fmt::format("{} takes {} instead of {}{}",
                     cause.from->cell->workers > 1 ? "an image of a worker" : "an image",
                     duration(cause.after_s), duration(cause.before_s),
                     in_brackets(doubts_about({cause.from->cell, cause.to->cell})));
}

/// Why a larger batch is faster, and why no longer: a sentence each.
void explain_series(std::vector<Block>& blocks, const BatchSeries& series) {
  const auto& first = *series.batches.front().cell;
  if (const auto faster = series.why_faster())
    blocks.push_back(
        faster->is_noise()
            ? plain(fmt::format("Why is a larger batch faster? {}: from {} {}: no clear difference.",
                                setup_of(first), batches(*faster), times_of_cause(*faster)))
            : finding(fmt::format("Why is a larger batch faster? {}: from {} {}: {}.{}", setup_of(first),
                                  batches(*faster), times_of_cause(*faster), main_parts(*faster),
                                  text_about_emulation(first))));
  if (const auto ended = series.why_no_longer()) {
    const bool is_slower = !ended->is_noise() && ended->after_s > ended->before_s;
    blocks.push_back(plain(fmt::format(
        "Why is a still larger batch no faster? {}: from {} {}{}; {}.", setup_of(first), batches(*ended),
        times_of_cause(*ended), is_slower ? fmt::format(", {}", main_parts(*ended)) : ", no clear difference",
        what_is_left(*ended->from))));
  }
}

}  // namespace

std::optional<Section> cause_section(const Conclusions& conclusions) {
  const auto all = analysis::batch_series(conclusions.cells);
  if (all.empty()) return std::nullopt;
  Section section{.id = "cause", .title = "Why is a batch faster than another?"};
  for (const BatchSeries& series : all) explain_series(section.blocks, series);
  section.blocks.push_back(reach_table(all));
  if (auto ledger = ledger_table_of_series(all); !ledger.rows.empty())
    section.blocks.push_back(std::move(ledger));
  return section;
}

}  // namespace paceline::report
