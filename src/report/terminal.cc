#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string_view>

#include "report/document.h"
#include "report/sections/parts.h"
#include "report/terminal_text.h"
#include "report/text.h"

// A table on a terminal. Cells of one row share lines: the figure on the first, its interval behind it, or
// below it when the table would be wider than the terminal. Headings are broken at words, so that a long
// label over short figures costs lines and not columns.

namespace paceline::report {
namespace {

/// A cell as the lines it takes.
std::vector<std::string> cell_lines(const TableCell& cell, const Column& column, bool stacked) {
  CellText text = cell_text(cell, column.format);
  if (!stacked || text.interval.empty()) return {one_line(text)};
  std::string interval = std::move(text.interval);
  text.interval.clear();
  return {one_line(text), std::move(interval)};
}

struct ColumnLayout {
  std::vector<std::size_t> widths;
  std::size_t gap = 2;   // blanks between columns
  bool stacked = false;  // intervals below their figures

  [[nodiscard]] std::size_t total() const {
    return std::accumulate(widths.begin(), widths.end(), std::size_t{0}) + gap * (widths.size() - 1);
  }
};

/// `roomy`: headings of some words get at least the width of a figure, so that they do not stand one word a
/// line.
ColumnLayout lay_out(const Table& table, bool stacked, bool roomy) {
  constexpr std::size_t kRoom = 8;
  ColumnLayout layout{.widths = {}, .gap = 2, .stacked = stacked};
  for (std::size_t i = 0; i < table.columns.size(); ++i) {
    std::size_t width = roomy ? std::min(kRoom, display_width(heading(table.columns[i]))) : 1;
    for (const std::string& word : words_of(heading(table.columns[i])))
      width = std::max(width, display_width(word));
    for (const auto& row : table.rows)
      for (const std::string& line : cell_lines(row[i], table.columns[i], stacked))
        width = std::max(width, display_width(line));
    layout.widths.push_back(width);
  }
  return layout;
}

/// Writes cells that take several lines each beside one another.
void append_row(std::string& out, const std::vector<std::vector<std::string>>& cells, const Table& table,
                const ColumnLayout& layout, bool from_bottom, const Style& style, bool heading_row) {
  std::size_t height = 0;
  for (const auto& cell : cells) height = std::max(height, cell.size());
  for (std::size_t line = 0; line < height; ++line) {
    std::string text;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::size_t skipped = from_bottom ? height - cells[i].size() : 0;
      const bool inside = line >= skipped && line - skipped < cells[i].size();
      if (i > 0) text.append(layout.gap, ' ');
      text += padded(inside ? cells[i][line - skipped] : "", layout.widths[i],
                     table.columns[i].format == Format::text);
    }
    text.erase(text.find_last_not_of(' ') + 1);
    if (heading_row) text = style.bold(text);
    if (!heading_row && line > 0) text = style.dim(text);
    out += text + "\n";
  }
}

/// Heading, rows and the rules around them.
void append_grid(std::string& out, const Table& table, const ColumnLayout& layout, const Style& style) {
  std::string rule;
  for (std::size_t i = 0; i < layout.total(); ++i) rule += "─";
  rule = style.dim(rule) + "\n";
  std::vector<std::vector<std::string>> cells;
  for (std::size_t i = 0; i < table.columns.size(); ++i)
    cells.push_back(wrapped(heading(table.columns[i]), layout.widths[i]));
  out += rule;
  append_row(out, cells, table, layout, true, style, true);
  out += rule;
  for (const auto& row : table.rows) {
    cells.clear();
    for (std::size_t i = 0; i < row.size(); ++i)
      cells.push_back(cell_lines(row[i], table.columns[i], layout.stacked));
    append_row(out, cells, table, layout, false, style, false);
  }
  out += rule;
}

/// The columns of `table` with these places.
Table part_of_table(const Table& table, const std::vector<std::size_t>& places) {
  Table part;
  for (const std::size_t i : places) part.columns.push_back(table.columns[i]);
  for (const auto& row : table.rows) {
    auto& cells = part.rows.emplace_back();
    for (const std::size_t i : places) cells.push_back(row[i]);
  }
  return part;
}

/// A table that is still wider than the terminal is printed in parts, each after the columns that name the
/// row.
void append_in_parts(std::string& out, const Table& table, const Style& style) {
  const auto is_key = [&](std::size_t i) {
    return table.columns[i].format == Format::integer || table.columns[i].format == Format::text;
  };
  std::vector<std::size_t> keys{0};
  if (table.columns.size() > 2 && is_key(1)) keys.push_back(1);
  std::vector<std::size_t> places = keys;
  for (std::size_t i = keys.size(); i < table.columns.size(); ++i) {
    places.push_back(i);
    if (places.size() == keys.size() + 1) continue;
    if (lay_out(part_of_table(table, places), true, true).total() <= static_cast<std::size_t>(style.width))
      continue;
    places.pop_back();
    const Table part = part_of_table(table, places);
    append_grid(out, part, lay_out(part, true, true), style);
    places = keys;
    places.push_back(i);
  }
  const Table part = part_of_table(table, places);
  append_grid(out, part, lay_out(part, true, true), style);
}

void append_for_terminal(std::string& out, const Table& table, const Style& style) {
  out += style.bold(table.title) + "\n";
  if (!table.definition.empty()) out += style.dim(broken(table.definition, "", 0, style.width));
  if (table.columns.empty()) return;
  const auto room = static_cast<std::size_t>(style.width);
  ColumnLayout layout = lay_out(table, false, true);
  if (layout.total() > room) layout = lay_out(table, true, true);
  if (layout.total() > room) layout = lay_out(table, true, false);
  if (layout.total() > room) layout.gap = 1;
  if (layout.total() > room)
    append_in_parts(out, table, style);
  else
    append_grid(out, table, layout, style);
  for (const std::string& footnote : table.footnotes) out += broken(footnote, "", 2, style.width);
  out += "\n";
}

void append_for_terminal(std::string& out, const Paragraph& paragraph, const Style& style) {
  const std::string begin(word_of<Paragraph::Tone::warning>(paragraph.tone, {"", "• ", "! "}));
  const std::string text = broken(paragraph.text, begin, display_width(begin), style.width);
  out += (paragraph.tone == Paragraph::Tone::warning ? style.warning(text) : text) + "\n";
}

/// Drawings are the page's; their figures stand in the tables. What is seen in them is said.
void append_for_terminal(std::string&, const Plot&, const Style&) {}
void append_for_terminal(std::string& out, const Figure& figure, const Style& style) {
  out += broken(figure.finding + ".", "• ", 2, style.width) + "\n";
}
void append_for_terminal(std::string& out, const Timeline& timeline, const Style& style) {
  out += broken(timeline.finding + ".", "• ", 2, style.width);
  out += style.dim(broken(timeline.note, "", 0, style.width));
  out += drawn_in_letters(timeline, style.width) + "\n";
}

/// A line for each number of workers: the efficiency, then every loss, each drawn with its letter.
void append_bars(std::string& out, const Waterfall& waterfall, const Style& style) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz";
  std::size_t longest = 0;
  for (const auto& bar : waterfall.bars) longest = std::max(longest, display_width(bar.name));
  const int cells = std::clamp(style.width - static_cast<int>(longest) - 20, 20, 60);
  for (const auto& bar : waterfall.bars) {
    double efficiency = 1, shown = 0;
    for (const double part : bar.parts) efficiency -= part;
    std::string drawn;
    // Rounded at the ends of parts, so that no error adds up.
    const auto draw = [&](double part, std::string_view letter) {
      const auto begin = std::lround(cells * shown), end = std::lround(cells * (shown + part));
      for (auto cell = begin; cell < end; ++cell) drawn += letter;
      shown += part;
    };
    draw(std::clamp(efficiency, 0.0, 1.0), "█");
    for (std::size_t i = 0; i < bar.parts.size() && i < kLetters.size(); ++i)
      if (bar.parts[i] > 0) draw(std::min(bar.parts[i], 1 - shown), kLetters.substr(i, 1));
    out += padded(bar.name, longest + 2, true) + padded(drawn, static_cast<std::size_t>(cells) + 2, true) +
           percent(efficiency) + "\n";
  }
  std::string legend = "█ efficiency";
  for (std::size_t i = 0; i < waterfall.changes.size() && i < kLetters.size(); ++i)
    legend += fmt::format(", {} {}", kLetters[i], waterfall.changes[i].name);
  out += style.dim(broken(legend + ".", "", 0, style.width)) + "\n";
}

void append_for_terminal(std::string& out, const Waterfall& waterfall, const Style& style) {
  std::size_t longest = std::max(display_width(waterfall.from_name), display_width(waterfall.to_name));
  for (const auto& change : waterfall.changes) longest = std::max(longest, display_width(change.name));
  const auto line = [&](const std::string& name, double seconds, bool is_change, const std::string& hint,
                        bool is_noise = false) {
    const std::string ms =
        fmt::format("{}{} ms", is_change && seconds >= 0 ? "+" : "", number(1e3 * seconds));
    std::string text = padded(name, longest + 2, true) + padded(ms, 12, false);
    if (is_noise) text = style.dim(text + "  within noise");
    const bool fits = display_width(text) + 2 + display_width(hint) <= static_cast<std::size_t>(style.width);
    if (!hint.empty() && fits) text += "  " + hint;
    text += "\n";
    return hint.empty() || fits ? text : text + broken(hint, "    ", 4, style.width);
  };
  out += broken(waterfall.finding + ".", "• ", 2, style.width);
  out += line(waterfall.from_name, waterfall.from, false, "");
  for (const auto& change : waterfall.changes)
    out += line(change.name, change.seconds, true, change.hint, change.is_noise);
  out += line(waterfall.to_name, waterfall.to, false, "") + "\n";
  if (!waterfall.bars.empty()) append_bars(out, waterfall, style);
}

/// The answers stand on a screen of their own (terminal_text.h).
void append_for_terminal(std::string&, const Answer&, const Style&) {}
void append_for_terminal(std::string&, const Next&, const Style&) {}

/// A line for each window.
void append_for_terminal(std::string& out, const Strip& strip, const Style& style) {
  constexpr std::size_t kBars = 13;
  std::size_t longest = 0;
  for (const auto& window : strip.windows) longest = std::max(longest, display_width(window.name));
  out += broken(strip.finding + ".", "• ", 2, style.width);
  out += style.dim(broken(strip.note + " ▄ is the median, █ twice it or more.", "", 0, style.width));
  for (const auto& window : strip.windows) {
    const std::string figures =
        fmt::format("{} to {} ms, others {}{}", number(1e3 * window.typical_s * std::ranges::min(window.low)),
                    number(1e3 * window.typical_s * std::ranges::max(window.high)),
                    window.others_cores ? fmt::format("{:.2f} cores", *window.others_cores) : "not known",
                    behind(window.mark));
    const bool fits = longest + kBars + display_width(figures) + 2 <= static_cast<std::size_t>(style.width);
    const std::string bars = drawn_in_bars(window.middle);
    out += fits
               ? padded(window.name, longest + 2, true) + padded(bars, kBars, true) + figures + "\n"
               : broken(window.name, "", 0, style.width) + broken(bars + " " + figures, "  ", 2, style.width);
  }
  out += "\n";
}
/// A comparison, a heat map, a gallery.
template <typename Drawing>
void append_for_terminal(std::string& out, const Drawing& drawing, const Style& style) {
  for (const Table& table : tables_of(drawing)) append_for_terminal(out, table, style);
}

}  // namespace

std::string to_terminal(const Document& document, int width, bool colour) {
  const Style style{.width = width, .colour = colour};
  std::string out;
  if (has_answers(document)) {
    out = answer_screen(document, style);
  } else {
    out = style.bold(document.title) + "\n";
    if (!document.subtitle.empty()) out += broken(document.subtitle, "", 0, width);
    out += "\n";
    for (const std::string& warning : document.warnings)
      out += style.warning(broken(warning, "! ", 2, width));
    if (!document.warnings.empty()) out += "\n";
  }
  for (const Section& section : document.sections) {
    if (is_answer(section)) {
      for (const Block& one : section.blocks)
        if (std::holds_alternative<Heatmap>(one) || std::holds_alternative<Gallery>(one))
          std::visit([&](const auto& value) { append_for_terminal(out, value, style); }, one);
      continue;
    }
    std::string line = "━━ " + section.title + " ";
    for (std::size_t used = display_width(line); used < static_cast<std::size_t>(width); ++used) line += "━";
    out += style.bold(line) + "\n\n";
    for (const Block& one : section.blocks)
      std::visit([&](const auto& value) { append_for_terminal(out, value, style); }, one);
  }
  std::size_t longest = 0;
  for (const auto& [what, value] : document.facts) longest = std::max(longest, display_width(what));
  for (const auto& [what, value] : document.facts)
    out += broken(value, padded(what, longest + 2, true), longest + 2, width);
  return out;
}

std::string first_screen(const Document& document, int width, bool colour, std::size_t most_lines) {
  constexpr std::size_t kWarnings = 2, kRows = 8;
  Document shown = document;
  shown.facts.clear();
  shown.sections.clear();
  const auto lines = [&] {
    const std::string text = to_terminal(shown, width, false);
    return static_cast<std::size_t>(std::count(text.begin(), text.end(), '\n'));
  };
  for (const Section& section : document.sections) {
    if (!is_answer(section)) continue;
    std::erase_if(shown.sections.emplace_back(section).blocks, [](const Block& block) {
      return std::holds_alternative<Heatmap>(block) || std::holds_alternative<Gallery>(block);
    });
  }
  if (shown.sections.empty()) {
    shown.warnings.resize(std::min(kWarnings, shown.warnings.size()));
    for (const Section& section : document.sections) {
      Section& begun = shown.sections.emplace_back(section);
      begun.blocks.clear();
      for (const Block& block : section.blocks) {
        begun.blocks.push_back(block);
        if (auto* table = std::get_if<Table>(&begun.blocks.back());
            table != nullptr && table->rows.size() > kRows) {
          table->footnotes.push_back(fmt::format("{} more rows", table->rows.size() - kRows));
          table->rows.resize(kRows);
        }
        if (lines() > most_lines) begun.blocks.pop_back();
      }
      if (begun.blocks.empty()) shown.sections.pop_back();
    }
  }
  // Less than a command that is cut in two: warnings, which the page has, then the grid.
  while (lines() > most_lines && !shown.warnings.empty()) shown.warnings.pop_back();
  if (lines() > most_lines)
    for (Section& section : shown.sections)
      std::erase_if(section.blocks, [](const Block& block) { return std::holds_alternative<Figure>(block); });
  std::string text = to_terminal(shown, width, colour);
  std::size_t end = 0;
  for (std::size_t line = 0; line < most_lines && end != std::string::npos; ++line)
    end = text.find('\n', end + (line > 0 ? 1 : 0));
  if (end != std::string::npos) text.resize(end + 1);
  return text;
}

}  // namespace paceline::report
