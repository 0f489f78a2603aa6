#include "report/sections/loader.h"

#include <fmt/format.h>

#include "analysis/loader.h"
#include "report/sections/parts.h"
#include "report/text.h"

namespace paceline::report {
namespace {

constexpr const char* kDefinition =
    "Used: images of a global batch over the mean step. Ceiling: what the loader threads could have prepared "
    "in their own time, all workers together. A core: images prepared in a second of processor time. Ready: "
    "batches that stood prepared when a step asked for one, mean over steps and ranks, of at most so many. "
    "Steps that waited: found none ready. The loader is called the limit where steps wait more than 5 % of "
    "their time for data and the ceiling is below 1.5 times what was used.";

std::vector<Column> columns() {
  return {{.key = "cell", .label = "cell"},
          {.key = "used", .label = "used", .unit = "images/s", .format = Format::rate},
          {.key = "ceiling", .label = "ceiling", .unit = "images/s", .format = Format::rate},
          {.key = "core", .label = "a core", .unit = "images/s", .format = Format::rate},
          {.key = "ready", .label = "ready", .format = Format::fixed2},
          {.key = "queue", .label = "of at most", .format = Format::fixed1},
          {.key = "waited", .label = "steps that waited", .format = Format::percent1},
          {.key = "data_wait", .label = "data wait", .format = Format::percent1},
          {.key = "verdict", .label = "the loader is"}};
}

std::string name_of(const analysis::Cell& cell) {
  std::string name = cell.kind;
  for (const std::string* part : {&cell.scaling, &cell.variant, &cell.label})
    if (!part->empty()) name += (part == &cell.label && !cell.variant.empty() ? ", " : " ") + *part;
  return name;
}

std::string verdict(const analysis::Breakdown& ledger) {
  if (analysis::is_data_bound(ledger)) return "the limit";
  return analysis::waits_for_scheduling(ledger) ? "fast enough, scheduled late" : "fast enough";
}

}  // namespace

std::optional<Table> loader_table(const Conclusions& conclusions) {
  Table table{.id = "loader", .title = "The loader", .definition = kDefinition, .columns = columns()};
  Footnotes footnotes;
  for (const auto& cell : conclusions.cells) {
    if (!cell.is_measured()) continue;
    const auto ledger = analysis::breakdown(cell);
    const auto use = analysis::loader_use(ledger);
    if (!use.ready) continue;
    auto& row = table.rows.emplace_back();
    row = {with_mark(words(name_of(cell)), marks_of(cell)),
           value(use.used_images_per_s),
           use.ceiling_images_per_s > 0 ? value(use.ceiling_images_per_s) : missing("no time was spent"),
           use.images_per_s_a_core ? value(*use.images_per_s_a_core) : missing("no time was spent"),
           value(*use.ready),
           value(*use.queue),
           value(*use.waited_share),
           value(ledger.mean.data_wait / ledger.mean.total()),
           words(verdict(ledger))};
    footnotes.explain(cell);
  }
  if (table.rows.empty()) return std::nullopt;
  table.footnotes = footnotes.take();
  return table;
}

}  // namespace paceline::report
