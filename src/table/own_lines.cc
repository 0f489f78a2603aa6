/// Finds the lines and cells of tables in Markdown and CSV, and splits files that hold several tables.

#include <algorithm>

#include "base/error.h"
#include "table/own_cells.h"

namespace paceline::table {
namespace {

/// "| 1 | 2 |" -> {"1", "2"}.
std::vector<std::string> cells_of_markdown(std::string_view line) {
  line = trimmed(line);
  if (line.starts_with('|')) line.remove_prefix(1);
  if (line.ends_with('|')) line.remove_suffix(1);
  const auto cells = split_at(line, '|');
  return {cells.begin(), cells.end()};
}

bool is_rule_of_markdown(std::string_view line) {
  return line.starts_with('|') && line.find('-') != std::string_view::npos &&
         line.find_first_not_of("|-: ") == std::string_view::npos;
}

}  // namespace

bool is_markdown(std::string_view text) {
  bool has_heads = false;
  while (!text.empty()) {
    const auto line = trimmed(take_line(text));
    if (has_heads && is_rule_of_markdown(line)) return true;
    has_heads = line.starts_with('|');
  }
  return false;
}

std::vector<Line> lines_of_markdown(std::string_view text) {
  std::vector<Line> lines;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const auto line = trimmed(take_line(text));
    if (!line.starts_with('|')) {
      if (!lines.empty()) break;
      continue;
    }
    if (is_rule_of_markdown(line)) continue;
    lines.push_back({number, cells_of_markdown(line)});
  }
  return lines;
}

std::vector<Line> lines_of_csv(std::string_view text, std::vector<std::string>& facts, char& separator) {
  std::size_t first = 1;
  for (auto rest = text; !rest.empty(); text = rest, ++first) {
    const auto line = trimmed(take_line(rest));
    const auto cell = line.substr(0, line.find_first_of(",;\t"));
    // "# GPUs" is a head, and no comment.
    if (!line.empty() && (line.front() != '#' || (cell != line && synonym_of(plain(cell)) != nullptr))) break;
    facts.emplace_back(line);
  }
  separator = csv_separator(text);
  std::vector<Line> lines;
  try {
    for (const auto& cells : read_csv(text, "", first)) {
      Line line{.number = cells.front().line};
      for (const auto& cell : cells) line.cells.push_back(cell.text);
      lines.push_back(std::move(line));
    }
  } catch (const base::Error&) {
    return {};  // the reader of tables says what is wrong
  }
  return lines;
}

void drop_empty(std::vector<Line>& lines) {
  while (!lines.front().cells.empty() && trimmed(lines.front().cells.back()).empty()) {
    const auto column = lines.front().cells.size() - 1;
    if (std::ranges::any_of(lines, [&](const Line& line) {
          return line.cells.size() > column && !trimmed(line.cells[column]).empty();
        }))
      return;
    for (Line& line : lines)
      if (line.cells.size() > column) line.cells.resize(column);
  }
  std::erase_if(lines, [](const Line& line) {
    return std::ranges::all_of(line.cells, [](const auto& cell) { return trimmed(cell).empty(); });
  });
}

std::size_t drop_summaries(std::vector<Line>& lines) {
  return std::erase_if(lines, [](const Line& line) {
    const auto first =
        std::ranges::find_if(line.cells, [](const auto& cell) { return !trimmed(cell).empty(); });
    const std::string words = first == line.cells.end() ? "" : plain(*first);
    return is_any(words, {"average", "avg", "avg.", "mean", "total", "sum", "geomean", "median", "Ø"});
  });
}

std::vector<std::string> split_tables(std::string_view text) {
  std::vector<std::string_view> lines;
  for (auto rest = text; !rest.empty();) lines.push_back(take_line(rest));
  const bool of_markdown = is_markdown(text);
  const auto is_between = [&](std::string_view line) {
    return of_markdown ? !trimmed(line).starts_with('|')
                       : line.find_first_not_of(",; \t\r\n") == std::string_view::npos;
  };
  // Each with the lines of the others left empty, so that the numbers of its lines stay.
  std::vector<std::string> tables;
  std::string facts;
  for (std::size_t at = 0; at < lines.size();) {
    if (is_between(lines[at]) || (!of_markdown && trimmed(lines[at]).starts_with('#'))) {
      ++at;
      continue;
    }
    std::size_t end = at;
    while (end < lines.size() && !is_between(lines[end])) ++end;
    std::string one;
    for (std::size_t k = 0; k < end; ++k) {
      const bool is_fact = !of_markdown && trimmed(lines[k]).starts_with('#');
      if (k >= at || is_fact) one += lines[k];
      one += '\n';
    }
    if (!looks_like_table(one)) return {std::string(text)};
    tables.push_back(std::move(one));
    at = end;
  }
  return tables.size() > 1 ? tables : std::vector{std::string(text)};
}

}  // namespace paceline::table
