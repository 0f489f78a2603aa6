#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <sstream>
#include <string_view>

#include "measure/statistics.h"
#include "report/document.h"
#include "report/sections/parts.h"
#include "report/terminal_text.h"
#include "report/text.h"

namespace paceline::report {
namespace {

/// "exposed transfer" -> "exposed_transfer"
std::string key_of(std::string name) {
  std::replace(name.begin(), name.end(), ' ', '_');
  return name;
}

/// RFC 4180: a field with a comma, a quote or a line end is quoted. A text that a spreadsheet would take for
/// a formula gets an apostrophe in front, which makes it a text.
std::string field(const std::string& written) {
  const bool is_formula =
      written.size() > 1 && std::string_view("=+-@\t\r").find(written[0]) != std::string::npos;
  const std::string text = is_formula ? "'" + written : written;
  if (text.find_first_of(",\"\n\r") == std::string::npos) return text;
  std::string result = "\"";
  for (const char letter : text) {
    if (letter == '"') result += '"';
    result += letter;
  }
  return result + "\"";
}

/// Empty if missing, because a dash would be no number for a spreadsheet. Twelve digits: more than any
/// measurement has, but fewer than those in which compilers differ.
std::string csv_figure(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? fmt::format("{:.12g}", *value) : "";
}

std::string csv_header(const Column& column, const char* suffix = "") {
  const std::string unit = column.unit.empty() ? "" : " [" + column.unit + "]";
  return field(column.key + suffix + unit);
}

bool has_interval(const Table& table, std::size_t column) {
  return std::ranges::any_of(table.rows,
                             [&](const auto& row) { return row[column].low && row[column].high; });
}

/// The texts of a row's marks and notes, each once, marks first.
std::string remarks(const std::vector<TableCell>& row) {
  std::vector<std::string> seen;
  const auto add = [&](const std::string& text) {
    if (!text.empty() && std::ranges::find(seen, text) == seen.end()) seen.push_back(text);
  };
  for (const TableCell& cell : row) {
    std::istringstream marks(cell.mark);
    for (std::string mark; marks >> mark;) add(mark);
  }
  for (const TableCell& cell : row) add(cell.note);
  return fmt::format("{}", fmt::join(seen, "; "));
}

Table table_of_drawing(const Waterfall& waterfall) {
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
  if (std::ranges::any_of(waterfall.changes, &Waterfall::Change::is_noise))
    table.footnotes.emplace_back("~ within noise: the interval holds 0.");
  return table;
}

/// A row per span, in the order of the spans.
Table table_of_drawing(const Timeline& timeline) {
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

Table table_of_drawing(const Comparison& comparison) {
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
    table.rows.push_back({{.text = row.name},
                          {.text = row.ratio ? "" : "-",
                           .value = row.ratio,
                           .low = row.low,
                           .high = row.high,
                           .mark = row.mark},
                          {.text = text_of(row.word)},
                          {.text = row.before},
                          {.text = row.after},
                          {.text = row.why}});
  return table;
}

Table table_of_drawing(const Heatmap& heatmap) {
  Table table{.id = heatmap.id,
              .title = heatmap.finding,
              .definition = heatmap.note,
              .columns = {{.key = "row", .label = heatmap.row_label + " \\ " + heatmap.column_label}}};
  for (const auto& name : heatmap.columns)
    table.columns.push_back({.key = name, .label = name, .format = heatmap.value.format});
  for (std::size_t row = 0; row < heatmap.rows.size(); ++row) {
    auto& cells = table.rows.emplace_back();
    cells.push_back({.text = heatmap.rows[row]});
    for (std::size_t column = 0; column < heatmap.columns.size(); ++column) {
      const auto& cell = heatmap.cells[row * heatmap.columns.size() + column];
      cells.push_back({.text = "-",
                       .value = cell.value,
                       .low = cell.low,
                       .high = cell.high,
                       .mark = cell.mark,
                       .note = cell.note});
    }
  }
  return table;
}

// The tables of each kind of block.
std::vector<Table> tables_of_kind(const Table& table) { return {table}; }
std::vector<Table> tables_of_kind(const Gallery& gallery) { return {gallery.table}; }
std::vector<Table> tables_of_kind(const Waterfall& waterfall) {
  if (waterfall.bars.empty()) return {table_of_drawing(waterfall)};
  return {table_of_drawing(waterfall), bars_as_table(waterfall)};
}
template <typename Drawing>
std::vector<Table> tables_of_kind(const Drawing& drawing) {
  return {table_of_drawing(drawing)};
}
std::vector<Table> tables_of_kind(const Strip& strip) { return {as_table(strip)}; }
// Points of lines are no table, and sentences have no figures of their own.
std::vector<Table> tables_of_kind(const Plot&) { return {}; }
std::vector<Table> tables_of_kind(const Figure&) { return {}; }
std::vector<Table> tables_of_kind(const Paragraph&) { return {}; }
std::vector<Table> tables_of_kind(const Answer&) { return {}; }
std::vector<Table> tables_of_kind(const Next&) { return {}; }

}  // namespace

std::vector<Table> tables_of(const Block& block) {
  return std::visit([](const auto& one) { return tables_of_kind(one); }, block);
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

Table as_table(const Strip& strip) {
  Table table{.id = strip.id,
              .title = strip.finding,
              .definition = strip.note,
              .columns = {{.key = "configuration", .label = "configuration"},
                          {.key = "record", .label = "record"},
                          in_ms("fastest", "fastest step"),
                          in_ms("median", "median"),
                          in_ms("slowest", "slowest"),
                          {.key = "steps", .label = "steps"},
                          {.key = "others", .label = "others", .unit = "cores", .format = Format::fixed2}}};
  for (const Strip::Window& window : strip.windows) {
    const auto step = [&](double ratio) {
      return TableCell{.value = ratio * window.typical_s, .mark = window.mark};
    };
    table.rows.push_back({{.text = window.name},
                          {.text = window.record},
                          step(std::ranges::min(window.low)),
                          step(measure::quantile(window.middle, 0.5)),
                          step(std::ranges::max(window.high)),
                          {.text = drawn_in_bars(window.middle)},
                          {.text = "-", .value = window.others_cores}});
  }
  return table;
}

Plot as_plot(const Figure& figure, const Figure::View& view) {
  std::string id = figure.id;
  if (figure.views.size() > 1) id += "-";
  if (figure.views.size() > 1)
    for (const char letter : base::lower_case(view.name))
      id += std::isalnum(static_cast<unsigned char>(letter)) != 0 ? letter : '-';
  return {.id = id,
          .title = figure.finding,
          .caption = figure.note,
          .x = view.x,
          .y = view.y,
          .series = view.series};
}

std::string to_csv(const Table& table) {
  std::vector<bool> interval;
  std::vector<std::string> line;
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    interval.push_back(has_interval(table, i));
    line.push_back(csv_header(table.columns[i]));
    if (!interval[i]) continue;
    line.push_back(csv_header(table.columns[i], "_low"));
    line.push_back(csv_header(table.columns[i], "_high"));
  }
  const bool with_remarks =
      std::ranges::any_of(table.rows, [](const auto& row) { return !remarks(row).empty(); });
  if (with_remarks) line.emplace_back("remarks");
  std::string out = fmt::format("{}\n", fmt::join(line, ","));
  for (const auto& row : table.rows) {
    line.clear();
    for (std::size_t i = 0; i < row.size(); ++i) {
      const bool is_text = table.columns[i].format == Format::text;
      line.push_back(is_text && !row[i].value ? field(row[i].text) : csv_figure(row[i].value));
      if (!interval[i]) continue;
      line.push_back(csv_figure(row[i].low));
      line.push_back(csv_figure(row[i].high));
    }
    if (with_remarks) line.push_back(field(remarks(row)));
    out += fmt::format("{}\n", fmt::join(line, ","));
  }
  return out;
}

std::string to_csv(const Plot& plot) {
  const auto axis = [](const Axis& one) {
    return field(one.unit.empty() ? one.label : fmt::format("{} [{}]", one.label, one.unit));
  };
  const bool bars = plot.kind == PlotKind::stacked_bar;
  std::string out = fmt::format("series,{},{},low,high,mark\n", axis(plot.x), axis(plot.y));
  for (const Series& series : plot.series)
    for (std::size_t i = 0; i < series.points.size(); ++i) {
      const Point& point = series.points[i];
      const std::string x =
          bars && i < plot.categories.size() ? field(plot.categories[i]) : csv_figure(point.x);
      out += fmt::format("{},{},{},{},{},{}\n", field(series.name), x, csv_figure(point.y),
                         csv_figure(point.low), csv_figure(point.high), field(point.mark));
    }
  return out;
}

std::vector<CsvFile> csv_files(const Document& document) {
  std::vector<CsvFile> files;
  OwnNames names;
  const auto add_table = [&](const Table& table) {
    files.push_back({names.next(table.id), to_csv(table), true});
  };
  const auto add_plot = [&](const Plot& plot) {
    files.push_back({names.next(plot.id), to_csv(plot), false});
  };
  if (!document.expectations.empty()) add_table(as_table(document.expectations));
  for (const Section& section : document.sections)
    for (const Block& block : section.blocks) {
      std::ranges::for_each(tables_of(block), add_table);
      if (const auto* plot = std::get_if<Plot>(&block)) add_plot(*plot);
      if (const auto* figure = std::get_if<Figure>(&block))
        for (const Figure::View& view : figure->views) add_plot(as_plot(*figure, view));
    }
  return files;
}

}  // namespace paceline::report
