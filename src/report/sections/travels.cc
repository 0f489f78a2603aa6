#include <fmt/format.h>

#include "measure/setting.h"
#include "report/sections/parts.h"
#include "report/sections/sections.h"
#include "report/text.h"

namespace paceline::report {
namespace {

using measure::Record;

constexpr const char* kTravelsDefinition =
    "What the workers exchange in a step. X, the flat gradient, is the sum of three parts: the gradients of "
    "all weights; batch norm's means and variances of this step, which are averaged with them and move the "
    "running statistics of every worker alike; and padding, so that each array begins at a cache line. "
    "Beside X a step sums eight numbers (whether to stop, whether the loss is finite, whether enough was "
    "measured, and the loss in five parts), in a collective of their own or, on devices, at the end of the "
    "last bucket, or with --gradients-as bf16 in a bucket of their own; and with --bn sync those of the "
    "statistics. Collectives: buckets, that one, and those of synchronised batch norm, times the steps; "
    "counted: by rank 0 in the window, a few more than that at its ends.";

const char* said_of_batch_norm(const std::string& mode) {
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

std::vector<TableCell> row_of_travels(const analysis::Cell& cell, const Record& record) {
  const auto& travels = record.communication;
  const auto bytes_of = [](std::int64_t number) { return value(static_cast<double>(number)); };
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
          bytes_of(*travels.parameter_bytes),
          bytes_of(*travels.statistics_bytes),
          bytes_of(*travels.padding_bytes),
          bytes_of(travels.gradient_bytes),
          travels.norm_bytes ? bytes_of(*travels.norm_bytes) : value(0),
          value(collectives),
          value(collectives * static_cast<double>(record.window.steps)),
          value(static_cast<double>(travels.collectives)),
          value(static_cast<double>(travels.bytes_sent) / static_cast<double>(record.window.steps))};
}

}  // namespace

std::optional<Section> travels_section(const Conclusions& conclusions) {
  Table table{
      .id = "travels",
      .title = "What travels between workers, a step",
      .definition = kTravelsDefinition,
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
    table.rows.push_back(row_of_travels(cell, *record));
    // Models without batch norm have the setting too.
    if (*record->communication.statistics_bytes > 0)
      footnotes.add(said_of_batch_norm(batch_norm_of(*record)));
    footnotes.explain_marks(cell);
  }
  if (table.rows.empty()) return std::nullopt;
  table.footnotes = footnotes.take();
  Section section{.id = "travels", .title = "What travels between the workers?"};
  section.blocks.push_back(std::move(table));
  return section;
}

}  // namespace paceline::report
