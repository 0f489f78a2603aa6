#include <fmt/format.h>

#include <algorithm>

#include "analysis/steps/bandwidth.h"
#include "measure/setting.h"
#include "report/sections/parts.h"
#include "report/sections/sections.h"
#include "report/text.h"

// The results of `paceline comm`: collectives alone, without training.

namespace paceline::report {
namespace {

using measure::Record;

constexpr const char* kNothingMoved = "one rank alone transfers nothing";

std::string form_of_buffers(bool in_place) { return in_place ? "in place" : "out of place"; }

/// "2 ranks in 2 processes, mpi: exchange": names the workers whose collectives these are.
std::string whose(const Record& record) {
  const auto& how = record.communication;
  std::string text = counted(record.workers, "rank");
  if (how.processes.value_or(1) > 1) text += fmt::format(" in {} processes", *how.processes);
  return fmt::format("{}, {}: {}", text, how.communicator, how.algorithm);
}

Table collectives_table(const Record& record, const std::string& id) {
  Table table{
      .id = id,
      .title = fmt::format("Collectives: {}", whose(record)),
      .definition =
          "X: bytes; for an all_gather those of its result, for a reduce_scatter those that it sums. t: "
          "time of the slowest rank, with a barrier before it. algbw = X / t; busbw = algbw x 2(N-1)/N "
          "(all_reduce), (N-1)/N (reduce_scatter, all_gather), 1 (broadcast). Correct: every element on "
          "every rank, in every repetition. GB = 1e9 bytes.",
      .columns = {{.key = "collective", .label = "collective"},
                  {.key = "form", .label = "form"},
                  {.key = "bytes", .label = "X", .unit = "B", .format = Format::integer},
                  {.key = "t", .label = "t", .unit = "s", .format = Format::milliseconds},
                  {.key = "algbw", .label = "algbw", .unit = "GB/s", .format = Format::rate},
                  {.key = "busbw", .label = "busbw", .unit = "GB/s", .format = Format::rate},
                  {.key = "repeats", .label = "repeats", .format = Format::integer},
                  {.key = "correct", .label = "correct"}}};
  for (const auto& one : *record.collectives) {
    const auto figures = analysis::figures(one, record.workers);
    table.rows.push_back({words(one.collective), words(form_of_buffers(one.in_place)), value(one.bytes),
                          figure(figures.seconds), figure(figures.algbw, kNothingMoved),
                          figure(figures.busbw, kNothingMoved), value(figures.seconds.n),
                          words(one.correct ? "yes" : "NO")});
    if (record.oversubscribed) mark_row(table.rows.back(), 3, "*");
  }
  if (record.workers < 2)
    table.footnotes.push_back(
        "One rank alone transfers nothing: t is that of the call, and there is no bandwidth.");
  if (record.oversubscribed) table.footnotes.push_back("*: more ranks than cores.");
  return table;
}

std::optional<Table> fits(const Record& record, const std::string& id) {
  if (record.workers < 2 || !record.link_fits || record.link_fits->empty()) return std::nullopt;
  Table table{.id = id,
              .title = "Latency and bandwidth",
              .definition =
                  "t(X) = latency + X / bandwidth, fitted over the sizes for the smallest relative errors. "
                  "Residual: root mean square of (t_model - t) / t.",
              .columns = {{.key = "collective", .label = "collective"},
                          {.key = "form", .label = "form"},
                          {.key = "latency", .label = "latency", .unit = "s", .format = Format::milliseconds},
                          {.key = "bandwidth", .label = "bandwidth", .unit = "GB/s", .format = Format::rate},
                          {.key = "residual", .label = "residual", .format = Format::percent1}}};
  bool all_shown = true;
  for (const auto& fit : *record.link_fits) {
    const bool shown = analysis::shows_bandwidth(fit, record);
    all_shown = all_shown && shown;
    table.rows.push_back({words(fit.collective), words(form_of_buffers(fit.in_place)), value(fit.alpha_s),
                          shown ? value(fit.bytes_per_s / 1e9) : missing("nearly all latency"),
                          value(fit.residual)});
  }
  if (!all_shown)
    table.footnotes.push_back(
        "-: up to the largest X nearly all of t is latency, and the times show no bandwidth; measure larger "
        "--sizes.");
  return table;
}

/// Bus bandwidth over sizes, a line for each collective and form with at least two sizes.
std::optional<Plot> bandwidths(const Record& record, const std::string& id) {
  if (record.workers < 2) return std::nullopt;
  Plot plot{.id = id,
            .title = "Bus bandwidth over sizes",
            .caption = "Small messages pay latency; where a line is level, it is bandwidth.",
            .x = {.label = "size X", .unit = "B", .log = true},
            .y = {.label = "busbw", .unit = "GB/s"}};
  for (const auto& one : *record.collectives) {
    const auto busbw = analysis::figures(one, record.workers).busbw;
    if (!busbw) continue;
    const auto name = fmt::format("{}, {}", one.collective, form_of_buffers(one.in_place));
    auto series = std::ranges::find(plot.series, name, &Series::name);
    if (series == plot.series.end()) series = plot.series.insert(series, {.name = name});
    Point point{.x = static_cast<double>(one.bytes), .y = busbw->median};
    take_interval(point, *busbw);
    if (record.oversubscribed) point.mark = "oversubscribed";
    series->points.push_back(std::move(point));
  }
  std::erase_if(plot.series, [](const Series& series) { return series.points.size() < 2; });
  return plot.series.empty() ? std::nullopt : std::optional<Plot>(std::move(plot));
}

constexpr const char* kTrafficDefinition =
    "What the workers exchange in a step. X, the flat gradient, is the sum of three parts: the gradients of "
    "all weights; batch norm's means and variances of this step, which are averaged with them and move the "
    "running statistics of every worker alike; and padding, so that each array begins at a cache line. "
    "Beside X a step sums eight numbers (whether to stop, whether the loss is finite, whether enough was "
    "measured, and the loss in five parts), in a collective of their own or, on devices, at the end of the "
    "last bucket, or with --gradients-as bf16 in a bucket of their own; and with --bn sync those of the "
    "statistics. Collectives: buckets, that one, and those of synchronised batch norm, times the steps; "
    "counted: by rank 0 in the window, a few more than that at its ends.";

const char* text_about_batch_norm(const std::string& mode) {
  if (mode.starts_with("sync"))
    return "--bn sync: every batch norm sums its means and variances over all workers inside forward, and their "
           "gradients inside backward; nothing else can be done meanwhile.";
  if (mode.starts_with("ghost"))
    return "--bn ghost:N: each group of N images of a worker is normalised by itself; nothing more is exchanged "
           "than with --bn local.";
  return "--bn local: each worker normalises by the images of its own batch, and nothing is exchanged for that; "
         "only the running statistics, which evaluation uses, are averaged, once a step, inside X.";
}

std::string batch_norm_of(const Record& record) {
  const auto* mode = measure::find_text(record.settings, "bn");
  return mode == nullptr ? "local" : *mode;
}

/// The first record of the cell that says what X (the reduced bytes) consists of. None with data-parallel,
/// which has no X: worker 0 distributes weights and collects gradients.
const Record* told_by(const analysis::Cell& cell) {
  for (const Record* record : cell.records)
    if (record->workers > 1 && !record->communication.parallel && record->communication.parameter_bytes &&
        record->communication.statistics_bytes && record->communication.padding_bytes &&
        record->window.steps > 0)
      return record;
  return nullptr;
}

std::vector<TableCell> row_of_traffic(const analysis::Cell& cell, const Record& record) {
  const auto& travels = record.communication;
  const std::int64_t norm = travels.norm_collectives.value_or(0);
  const auto buckets = static_cast<std::int64_t>(record.buckets.size());
  // Older records do not say that the votes are in the buckets: then there are too few collectives for one of
  // their own.
  const bool are_in_buckets =
      travels.vote_bytes || travels.collectives < (buckets + 1 + norm) * record.window.steps;
  const auto votes = are_in_buckets ? 0 : 1;
  const auto collectives = static_cast<double>(buckets + votes + norm);
  const std::string name =
      cell.variant.empty() ? cell.label : fmt::format("{}, {}", cell.variant, cell.label);
  return {with_mark(words(fmt::format("{} {}", cell.kind, name)), marks_of(cell)),
          words(batch_norm_of(record)),
          value(*travels.parameter_bytes),
          value(*travels.statistics_bytes),
          value(*travels.padding_bytes),
          value(travels.gradient_bytes),
          travels.norm_bytes ? value(*travels.norm_bytes) : value(0),
          value(collectives),
          value(collectives * static_cast<double>(record.window.steps)),
          value(travels.collectives),
          value(static_cast<double>(travels.bytes_sent) / static_cast<double>(record.window.steps))};
}

using analysis::Bandwidth;

constexpr const char* kBandwidthDefinition =
    "X: bytes that one step reduces in its buckets: the gradients, on devices with 32 bytes of votes. t: "
    "transfer time of a step, without waiting for a later rank. algbw = X / t; busbw = algbw x 2(N-1)/N "
    "(what a ring's links would carry; comparable across N). Sent: bytes that a rank handed on a step, as "
    "the communicator counted; ring: 2(N-1)/N X. Utilisation = busbw / ceiling, the median busbw of "
    "reducing the same buckets with nothing else running. An epoch's bytes = its steps x X. GB = 1e9 bytes.";

constexpr const char* kNoCeiling = "no ceiling was measured";

std::vector<TableCell> bandwidth_row(std::int64_t batch, const Bandwidth& one) {
  return {value(batch),
          value(one.cell->workers),
          value(one.bytes_per_step),
          value(one.buckets),
          value(one.sent_per_step),
          value(one.ring_per_step),
          figure(one.transfer_s),
          figure(one.algbw),
          figure(one.busbw),
          figure(one.ceiling, kNoCeiling),
          figure(one.utilisation,
                 one.ceiling ? "the buckets alone were slower than in the steps: no ceiling" : kNoCeiling),
          value(one.bytes_per_epoch)};
}

void explain_bandwidth(Footnotes& footnotes, const Bandwidth& one) {
  if (!one.is_ring_traffic)
    footnotes.add(fmt::format(
        "The all-reduce is not a ring ({}): what a rank sent differs from 2(N-1)/N X, so busbw allows "
        "comparisons but is not its traffic.",
        one.algorithm.empty() ? "algorithm not named" : one.algorithm));
  if (one.utilisation && one.utilisation->median < 0.5)
    footnotes.add(fmt::format(
        "Utilisation below 50 %: in a step the transfer shares {} and memory with the backward pass; "
        "the ceiling was reached alone.",
        analysis::is_of_cuda_engine(one.cell->record()) ? "the device" : "cores"));
}

struct BandwidthLine {
  std::int64_t batch;
  std::string marks;
  Bandwidth one;
};

std::optional<Table> bandwidth_table(const std::string& id, const std::string& title,
                                     const std::string& batch_label,
                                     const std::vector<BandwidthLine>& lines) {
  if (lines.empty()) return std::nullopt;
  Table table{.id = id,
              .title = title,
              .definition = kBandwidthDefinition,
              .columns = {{.key = "batch", .label = batch_label, .format = Format::integer},
                          {.key = "workers", .label = "workers", .format = Format::integer},
                          in_bytes("bytes_per_step", "X a step", "B"),
                          {.key = "buckets", .label = "buckets a step", .format = Format::integer},
                          in_bytes("sent_per_step", "sent a step", "B"),
                          in_bytes("ring_per_step", "ring 2(N-1)/N X", "B"),
                          in_ms("transfer", "t"),
                          in_rate("algbw", "algbw", "GB/s"),
                          in_rate("busbw", "busbw", "GB/s"),
                          in_rate("ceiling", "ceiling", "GB/s"),
                          {.key = "utilisation", .label = "of the ceiling", .format = Format::percent1},
                          in_bytes("bytes_per_epoch", "X an epoch", "B")}};
  Footnotes footnotes;
  std::vector<const analysis::Cell*> cells;
  for (const auto& [batch, marks, one] : lines) {
    table.rows.push_back(bandwidth_row(batch, one));
    table.rows.back()[1] = with_mark(std::move(table.rows.back()[1]), marks);
    cells.push_back(one.cell);
    footnotes.explain(*one.cell);
    explain_bandwidth(footnotes, one);
  }
  add_setup_columns(table, 2, cells);
  table.footnotes = footnotes.take();
  return table;
}

std::optional<Table> table_of_mode(const Conclusions& conclusions, analysis::Mode mode) {
  std::vector<BandwidthLine> lines;
  for (const auto& group : conclusions.scaling(mode))
    for (const auto& row : group.rows)
      if (auto one = analysis::bandwidth(*row.cell))
        lines.push_back({group.batch, marks_of(row), std::move(*one)});
  return bandwidth_table(fmt::format("scale-{}-bandwidth", name(mode)),
                         fmt::format("Table 3, {} scaling: the all-reduce", name(mode)),
                         mode == analysis::Mode::weak ? "local batch" : "global batch", lines);
}

/// The table for trainings and sweeps outside scaling groups.
std::optional<Table> single_table(const Conclusions& conclusions) {
  std::vector<BandwidthLine> lines;
  for (const auto& cell : conclusions.cells) {
    if ((cell.kind != "train" && cell.kind != "sweep") || conclusions.is_scaled(cell)) continue;
    if (auto one = analysis::bandwidth(cell))
      lines.push_back({cell.local_batch, marks_of(cell), std::move(*one)});
  }
  return bandwidth_table("bandwidth", "The all-reduce", "local batch", lines);
}

}  // namespace

bool is_of_collectives(const Record& record) { return record.kind == "comm" && record.collectives; }

std::optional<Section> collectives_section(const Conclusions& conclusions) {
  Section section{.id = "collectives", .title = "How fast are the collectives alone?"};
  int number = 0;
  for (const Record& record : conclusions.records) {
    if (!is_of_collectives(record)) continue;
    const std::string suffix = ++number == 1 ? "" : fmt::format("-{}", number);
    if (record.status != "complete")
      section.blocks.push_back(warning(fmt::format("{}: {}.", record.status, record.reason)));
    add_block(section.blocks, bandwidths(record, "collective-bandwidths" + suffix));
    section.blocks.push_back(collectives_table(record, "collectives" + suffix));
    add_block(section.blocks, fits(record, "collective-fits" + suffix));
  }
  if (number == 0) return std::nullopt;
  return section;
}

Section collectives_circumstances(const Conclusions& conclusions) {
  Section section{.id = "circumstances", .title = "How it was measured"};
  for (const Record& record : conclusions.records)
    for (const auto& note : record.notes) section.blocks.push_back(plain(note + "."));
  return section;
}

std::optional<Section> traffic_section(const Conclusions& conclusions) {
  Table table{
      .id = "travels",
      .title = "What travels between workers, a step",
      .definition = kTrafficDefinition,
      .columns = {{.key = "cell", .label = "cell"},
                  {.key = "bn", .label = "batch norm"},
                  {.key = "gradients", .label = "gradients", .unit = "B", .format = Format::integer},
                  {.key = "statistics", .label = "statistics", .unit = "B", .format = Format::integer},
                  {.key = "padding", .label = "padding", .unit = "B", .format = Format::integer},
                  {.key = "x", .label = "X", .unit = "B", .format = Format::integer},
                  {.key = "norm", .label = "of --bn sync", .unit = "B", .format = Format::integer},
                  {.key = "collectives", .label = "collectives", .format = Format::integer},
                  {.key = "in_window", .label = "in the window", .format = Format::integer},
                  {.key = "counted", .label = "counted", .format = Format::integer},
                  {.key = "sent", .label = "sent by rank 0", .unit = "B", .format = Format::integer}}};
  Footnotes footnotes;
  for (const auto& cell : conclusions.cells) {
    const Record* record = told_by(cell);
    if (record == nullptr) continue;
    table.rows.push_back(row_of_traffic(cell, *record));
    // Models without batch norm have the setting too.
    if (*record->communication.statistics_bytes > 0)
      footnotes.add(text_about_batch_norm(batch_norm_of(*record)));
    footnotes.explain_marks(cell);
  }
  if (table.rows.empty()) return std::nullopt;
  table.footnotes = footnotes.take();
  Section section{.id = "travels", .title = "What travels between the workers?"};
  section.blocks.push_back(std::move(table));
  return section;
}

std::optional<Section> bandwidth_section(const Conclusions& conclusions) {
  Section section{.id = "bandwidth", .title = "How fast is the all-reduce?"};
  for (const auto mode : {analysis::Mode::weak, analysis::Mode::strong})
    add_block(section.blocks, table_of_mode(conclusions, mode));
  add_block(section.blocks, single_table(conclusions));
  if (section.blocks.empty()) return std::nullopt;
  return section;
}

}  // namespace paceline::report
