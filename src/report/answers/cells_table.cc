#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <tuple>

#include "analysis/compare/interval.h"
#include "analysis/steps/bandwidth.h"
#include "analysis/steps/breakdown.h"
#include "report/answers/answers.h"
#include "report/answers/wording.h"
#include "report/sections/parts.h"

// One table of all cells: their measurements, in groups of columns.

namespace paceline::report {
namespace {

using analysis::Cell;

constexpr const char* kWhy = "not measured";

std::string word_of_others(analysis::Others others) {
  switch (others) {
    case analysis::Others::none:
      return "no";
    case analysis::Others::busy:
      return "yes";
    case analysis::Others::unknown:
      return "unknown";
  }
  return "unknown";
}

std::vector<Column> cell_columns() {
  const auto part = [](const char* key, const char* label) {
    return Column{.key = key, .label = label, .format = Format::percent1, .group = "parts of a step"};
  };
  return {{.key = "cell", .label = "cell"},
          {.key = "way", .label = "way"},
          {.key = "local_batch", .label = "local batch", .format = Format::integer},
          {.key = "global_batch", .label = "global batch", .format = Format::integer},
          {.key = "rate", .label = "throughput", .unit = "images/s", .format = Format::rate},
          {.key = "step", .label = "step", .unit = "s", .format = Format::milliseconds, .group = "time"},
          {.key = "epoch", .label = "epoch", .unit = "s", .format = Format::seconds, .group = "time"},
          part("compute", "compute"),
          part("transfer", "transfer"),
          part("wait", "wait"),
          part("data", "data"),
          {.key = "busbw", .label = "busbw", .unit = "GB/s", .format = Format::rate, .group = "network"},
          {.key = "sent", .label = "sent a step", .unit = "B", .format = Format::bytes, .group = "network"},
          {.key = "plan", .label = "plan", .unit = "B", .format = Format::bytes, .group = "memory"},
          {.key = "peak", .label = "peak", .unit = "B", .format = Format::bytes, .group = "memory"},
          {.key = "repeats", .label = "repeats", .format = Format::integer, .group = "measured"},
          {.key = "steps", .label = "steps", .format = Format::integer, .group = "measured"},
          {.key = "others", .label = "others at work", .group = "measured"},
          {.key = "status", .label = "status", .group = "measured"},
          {.key = "records", .label = "records", .group = "records"}};
}

TableCell bytes_or_missing(std::optional<std::int64_t> bytes) {
  return bytes && *bytes > 0 ? value(static_cast<double>(*bytes)) : missing(kWhy);
}

std::vector<TableCell> row_of_cell(const Cell& cell) {
  std::vector<TableCell> row{words(cell.name()), with_mark(words(way_of(cell)), marks_of(cell)),
                             value(static_cast<double>(cell.local_batch)),
                             value(static_cast<double>(cell.global_batch))};
  const auto& record = cell.record();
  if (cell.is_measured()) {
    const auto parts = analysis::breakdown(cell).mean;
    row.push_back(figure(cell.images_per_s));
    row.push_back(figure(cell.step_s));
    row.push_back(with_mark(figure(cell.epoch_s), cell.epoch_measured ? "" : "est."));
    for (const double seconds :
         {parts.compute(), parts.exposed_transfer, parts.exposed_wait, parts.data_wait})
      row.push_back(value(seconds / parts.total()));
    const auto network = analysis::bandwidth(cell);
    row.push_back(network ? figure(network->busbw) : missing("one worker sends nothing"));
    row.push_back(network ? value(network->sent_per_step) : missing("one worker sends nothing"));
  } else {
    row.insert(row.end(), 9, missing(cell.reason.empty() ? cell.status : cell.reason));
  }
  const auto [plan, peak] = memory_of(record);
  row.push_back(bytes_or_missing(plan));
  row.push_back(bytes_or_missing(peak));
  row.push_back(value(static_cast<double>(cell.is_measured() ? cell.records.size() : 0)));
  row.push_back(value(static_cast<double>(cell.steps_measured)));
  row.push_back(cell.is_measured() ? words(word_of_others(cell.others)) : missing(kWhy));
  row.push_back(words(cell.status));
  std::vector<std::string> ids;
  for (const auto* one : cell.records) ids.push_back(one->id);
  row.push_back(words(fmt::format("{}", fmt::join(ids, " "))));
  return row;
}

}  // namespace

Table cells_table(const Conclusions& conclusions) {
  Table table{.id = "every-cell",
              .title = "Every cell",
              .definition =
                  "A row is a configuration with all its repeats. Times are medians with 95 % intervals, "
                  "parts of a step are means. est.: all images over the images/s of some steps.",
              .columns = cell_columns()};
  Footnotes footnotes;
  std::vector<const Cell*> cells;
  for (const Cell& cell : conclusions.cells) cells.push_back(&cell);
  // Ways of using the machine in the order of the records, each sorted by batch.
  std::vector<std::string> ways;
  const auto place_of = [&](const Cell* cell) {
    const std::string way = way_of(*cell);
    const auto found = std::find(ways.begin(), ways.end(), way);
    if (found != ways.end()) return found - ways.begin();
    ways.push_back(way);
    return static_cast<std::ptrdiff_t>(ways.size()) - 1;
  };
  std::vector<std::tuple<std::ptrdiff_t, std::int64_t, const Cell*>> placed;
  for (const Cell* cell : cells) placed.emplace_back(place_of(cell), cell->global_batch, cell);
  std::stable_sort(placed.begin(), placed.end(), [](const auto& a, const auto& b) {
    return std::tie(std::get<0>(a), std::get<1>(a)) < std::tie(std::get<0>(b), std::get<1>(b));
  });
  std::transform(placed.begin(), placed.end(), cells.begin(),
                 [](const auto& one) { return std::get<2>(one); });
  // Cells that were planned but not run, such as a batch too large for the memory, come last.
  std::stable_partition(cells.begin(), cells.end(), [](const Cell* cell) { return cell->is_measured(); });
  for (const Cell* cell : cells) {
    table.rows.push_back(row_of_cell(*cell));
    footnotes.explain(*cell);
  }
  insert_setup_columns(table, 2, cells);
  table.footnotes = footnotes.take();
  return table;
}

}  // namespace paceline::report
