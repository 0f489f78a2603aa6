#include "analysis/steps/bandwidth.h"

#include <fmt/format.h>

#include <algorithm>

#include "report/sections/parts.h"
#include "report/sections/sections.h"
#include "report/text.h"

namespace paceline::report {
namespace {

using analysis::Bandwidth;

constexpr const char* kBandwidthDefinition =
    "X: bytes that one step reduces in its buckets: the gradients, on devices with 32 bytes of votes. t: "
    "transfer time of a step, without waiting for a later rank. algbw = X / t; busbw = algbw x 2(N-1)/N "
    "(what a ring's links would carry; comparable across N). Sent: bytes that a rank handed on a step, as "
    "the communicator counted; ring: 2(N-1)/N X. Utilisation = busbw / ceiling, the median busbw of "
    "reducing the same buckets with nothing else running. An epoch's bytes = its steps x X. GB = 1e9 bytes.";

std::vector<Column> bandwidth_columns(const std::string& batch_label) {
  const auto amount = [](std::string key, std::string label) {
    return Column{.key = std::move(key), .label = std::move(label), .unit = "B", .format = Format::bytes};
  };
  const auto rate = [](std::string key, std::string label) {
    return Column{.key = std::move(key), .label = std::move(label), .unit = "GB/s", .format = Format::rate};
  };
  return {{.key = "batch", .label = batch_label, .format = Format::integer},
          {.key = "workers", .label = "workers", .format = Format::integer},
          amount("bytes_per_step", "X a step"),
          {.key = "buckets", .label = "buckets a step", .format = Format::integer},
          amount("sent_per_step", "sent a step"),
          amount("ring_per_step", "ring 2(N-1)/N X"),
          {.key = "transfer", .label = "t", .unit = "s", .format = Format::milliseconds},
          rate("algbw", "algbw"),
          rate("busbw", "busbw"),
          rate("ceiling", "ceiling"),
          {.key = "utilisation", .label = "of the ceiling", .format = Format::percent1},
          amount("bytes_per_epoch", "X an epoch")};
}

std::vector<TableCell> bandwidth_row(std::int64_t batch, const Bandwidth& one) {
  return {value(static_cast<double>(batch)),
          value(one.cell->workers),
          value(one.bytes_per_step),
          value(static_cast<double>(one.buckets)),
          value(one.sent_per_step),
          value(one.ring_per_step),
          figure(one.transfer_s),
          figure(one.algbw),
          figure(one.busbw),
          one.ceiling ? figure(*one.ceiling) : missing("no ceiling was measured"),
          one.utilisation ? figure(*one.utilisation) : missing("no ceiling was measured"),
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

std::optional<Table> bandwidth_table(const std::vector<analysis::ScalingGroup>& groups, analysis::Mode mode) {
  const std::string word = name(mode);
  Table table{.id = "scale-" + word + "-bandwidth",
              .title = fmt::format("Table 3, {} scaling: the all-reduce", word),
              .definition = kBandwidthDefinition,
              .columns = bandwidth_columns(mode == analysis::Mode::weak ? "local batch" : "global batch")};
  Footnotes footnotes;
  std::vector<const analysis::Cell*> cells;
  for (const auto& group : groups) {
    for (const auto& row : group.rows) {
      const auto one = analysis::bandwidth(*row.cell);
      if (!one) continue;
      table.rows.push_back(bandwidth_row(group.batch, *one));
      cells.push_back(row.cell);
      table.rows.back()[1] = with_mark(std::move(table.rows.back()[1]), marks_of(row));
      footnotes.explain(*row.cell);
      explain_bandwidth(footnotes, *one);
    }
  }
  if (table.rows.empty()) return std::nullopt;
  add_setup_columns(table, 2, cells);
  table.footnotes = footnotes.take();
  return table;
}

bool is_in(const std::vector<analysis::ScalingGroup>& groups, const analysis::Cell& cell) {
  return std::any_of(groups.begin(), groups.end(), [&](const auto& group) {
    return std::any_of(group.rows.begin(), group.rows.end(),
                       [&](const auto& row) { return row.cell == &cell; });
  });
}

/// The table for trainings and sweeps outside scaling groups.
std::optional<Table> single_table(const Conclusions& conclusions) {
  Table table{.id = "bandwidth",
              .title = "The all-reduce",
              .definition = kBandwidthDefinition,
              .columns = bandwidth_columns("local batch")};
  Footnotes footnotes;
  std::vector<const analysis::Cell*> cells;
  for (const auto& cell : conclusions.cells) {
    if (cell.kind != "train" && cell.kind != "sweep") continue;
    if (is_in(conclusions.weak, cell) || is_in(conclusions.strong, cell)) continue;
    const auto one = analysis::bandwidth(cell);
    if (!one) continue;
    cells.push_back(&cell);
    table.rows.push_back(bandwidth_row(cell.local_batch, *one));
    table.rows.back()[1] = with_mark(std::move(table.rows.back()[1]), marks_of(cell));
    footnotes.explain(cell);
    explain_bandwidth(footnotes, *one);
  }
  if (table.rows.empty()) return std::nullopt;
  add_setup_columns(table, 2, cells);
  table.footnotes = footnotes.take();
  return table;
}

}  // namespace

std::optional<Section> bandwidth_section(const Conclusions& conclusions) {
  Section section{.id = "bandwidth", .title = "How fast is the all-reduce?"};
  for (const auto mode : {analysis::Mode::weak, analysis::Mode::strong})
    if (auto one = bandwidth_table(conclusions.scaling(mode), mode))
      section.blocks.push_back(std::move(*one));
  if (auto one = single_table(conclusions)) section.blocks.push_back(std::move(*one));
  if (section.blocks.empty()) return std::nullopt;
  return section;
}

}  // namespace paceline::report
