#include "report/as_table.h"

#include <algorithm>
#include <cctype>

#include "report/names.h"

namespace paceline::report {
namespace {

/// "exposed transfer" -> "exposed_transfer"
std::string key_of(std::string name) {
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

}  // namespace

Table as_table(const Waterfall& waterfall) {
  Table table{.id = waterfall.id,
              .title = waterfall.finding,
              .definition = waterfall.note,
              .columns = {{.key = "part", .label = "part"},
                          {.key = "time", .label = "time", .unit = "s", .format = Format::milliseconds},
                          {.key = "hint", .label = "what could be changed"}}};
  const auto add = [&](const std::string& name, double seconds) {
    table.rows.push_back({{.text = name}, {.value = seconds}, {.text = ""}});
  };
  add(waterfall.from_name, waterfall.from);
  for (const auto& change : waterfall.changes)
    table.rows.push_back({{.text = "+ " + change.name},
                          {.value = change.seconds,
                           .low = change.low,
                           .high = change.high,
                           .mark = change.is_noise ? "~" : ""},
                          {.text = change.hint}});
  add(waterfall.to_name, waterfall.to);
  if (std::any_of(waterfall.changes.begin(), waterfall.changes.end(),
                  [](const auto& change) { return change.is_noise; }))
    table.footnotes.emplace_back("~ within noise: the interval holds 0.");
  return table;
}

Table bars_as_table(const Waterfall& waterfall) {
  Table table{.id = waterfall.id + "-over-workers",
              .title = "The same over the number of workers, as parts of their steps",
              .columns = {{.key = "workers", .label = "workers"},
                          {.key = "step", .label = "step", .unit = "s", .format = Format::milliseconds},
                          {.key = "efficiency", .label = "efficiency", .format = Format::percent1}}};
  for (const auto& change : waterfall.changes)
    table.columns.push_back({.key = key_of(change.name), .label = change.name, .format = Format::percent1});
  for (const auto& bar : waterfall.bars) {
    auto& row = table.rows.emplace_back();
    double efficiency = 1;
    for (const double part : bar.parts) efficiency -= part;
    row = {{.text = bar.name}, {.value = bar.step_s}, {.value = efficiency}};
    for (const double part : bar.parts) row.push_back({.value = part});
  }
  return table;
}

Table as_table(const Timeline& timeline) {
  Table table{.id = timeline.id,
              .title = timeline.finding,
              .definition = timeline.note,
              .columns = {{.key = "lane", .label = "lane"},
                          {.key = "phase", .label = "phase"},
                          {.key = "begin", .label = "begin", .unit = "s", .format = Format::milliseconds},
                          {.key = "end", .label = "end", .unit = "s", .format = Format::milliseconds}}};
  for (const auto& span : timeline.spans)
    table.rows.push_back({{.text = timeline.lanes[static_cast<std::size_t>(span.lane)]},
                          {.text = timeline.phases[static_cast<std::size_t>(span.phase)]},
                          {.value = span.begin},
                          {.value = span.end}});
  return table;
}

Table as_table(const Comparison& comparison) {
  Table table{.id = comparison.id,
              .title = comparison.finding,
              .definition = comparison.note,
              .columns = {{.key = "pair", .label = "pair"},
                          {.key = "ratio", .label = comparison.name_of_ratio, .format = Format::fixed3},
                          {.key = "word", .label = "is"},
                          {.key = "before", .label = "A"},
                          {.key = "after", .label = "B"},
                          {.key = "why", .label = "why not compared"}}};
  for (const auto& row : comparison.rows)
    table.rows.push_back(
        {{.text = row.name},
         {.text = row.ratio ? "" : "-", .value = row.ratio, .low = row.low, .high = row.high},
         {.text = std::string(text_of(row.word))},
         {.text = row.before},
         {.text = row.after},
         {.text = row.why}});
  return table;
}

Plot as_plot(const Figure& figure, const Figure::View& view) {
  std::string id = figure.id;
  if (figure.views.size() > 1) id += "-";
  if (figure.views.size() > 1)
    for (const char letter : view.name)
      id += std::isalnum(static_cast<unsigned char>(letter)) != 0
                ? static_cast<char>(std::tolower(static_cast<unsigned char>(letter)))
                : '-';
  return {.id = id,
          .title = figure.finding,
          .caption = figure.note,
          .x = view.x,
          .y = view.y,
          .series = view.series};
}

}  // namespace paceline::report
