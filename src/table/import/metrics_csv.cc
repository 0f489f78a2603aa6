/// Reads metrics of trainers in lines of cells: CSV with ",", ";", tabs or blanks between them, behind other
/// lines and behind what a launcher wrote before each line.

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/error.h"
#include "base/text.h"
#include "table/import/import.h"
#include "table/import/metrics_log.h"

namespace paceline::table {
namespace {

using base::ErrorKind;

constexpr std::string_view kEndsOfPrefixes = ":]>|";

bool is_letter_or_digit(char one) { return std::isalnum(static_cast<unsigned char>(one)) != 0; }

/// The cells of a line, without regard to quotes.
std::vector<std::string_view> rough_cells(std::string_view line, char separator) {
  return separator == ' ' ? split_words(line) : split_at(line, separator);
}

std::string_view without_quotes(std::string_view cell) {
  return cell.size() > 1 && cell.front() == '"' && cell.back() == '"' ? cell.substr(1, cell.size() - 2)
                                                                      : cell;
}

bool is_number_in_cell(std::string_view cell) {
  return read_number(trimmed(without_quotes(cell))).has_value();
}

/// The length of a text that looks like `shape`: runs of letters and digits may differ, all else is equal,
/// and blanks match blanks. Nothing if `line` does not begin so.
std::optional<std::size_t> length_of_prefix(std::string_view line, std::string_view shape) {
  std::size_t at = 0;
  for (std::size_t i = 0; i < shape.size();) {
    const auto run = [](std::string_view text, std::size_t begin, auto belongs) {
      auto end = begin;
      while (end < text.size() && belongs(text[end])) ++end;
      return end;
    };
    bool (*is_alike)(char) = is_letter_or_digit;
    if (!is_alike(shape[i])) is_alike = [](char one) { return one == ' ' || one == '\t'; };
    if (is_alike(shape[i])) {
      const auto end = run(line, at, is_alike);
      if (end == at) return std::nullopt;
      at = end;
      i = run(shape, i, is_alike);
    } else {
      if (at >= line.size() || line[at] != shape[i]) return std::nullopt;
      ++at;
      ++i;
    }
  }
  return at;
}

/// Where the line of heads is.
struct Heads {
  std::size_t at = 0, line = 0;  ///< its first byte, and its number
  std::string prefix;            ///< what a launcher wrote before it
  char separator = ',';
  std::size_t before = 0;  ///< lines that were passed over
  std::string first_before;
  bool has_key = true;
};

/// The heads in `line`, if one of them names epochs or steps.
std::optional<Heads> heads_of(std::string_view line) {
  for (const char separator : {',', ';', '\t', ' '}) {
    const auto cells = rough_cells(line, separator);
    if (cells.size() < 2) continue;
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const auto name = last_word_of_prefix(without_quotes(cells[i]));
      if (!metric_key_of(name)) continue;
      // Sentences have the word too; heads in blanks are names, of which no two are equal.
      if (separator == ' ' && (i > 1 || std::ranges::any_of(cells, [](std::string_view cell) {
                                 return is_number_in_cell(cell) ||
                                        cell.find_first_of(".,:=!?") != std::string_view::npos;
                               })))
        continue;
      Heads heads{.separator = separator};
      const auto place = static_cast<std::size_t>(name.data() - line.data());
      const auto begin_of_cell = static_cast<std::size_t>(cells[i].data() - line.data());
      if (place > begin_of_cell + 1) {
        heads.prefix = line.substr(0, place);
      } else if (const auto end = cells.front().find_last_of(kEndsOfPrefixes);
                 i > 0 && end != std::string_view::npos) {
        heads.prefix = line.substr(0, static_cast<std::size_t>(cells.front().data() - line.data()) + end + 1);
      }
      if (trimmed(heads.prefix) == "#") heads.prefix.clear();  // heads in a comment
      return heads;
    }
  }
  return std::nullopt;
}

/// Heads without an epoch or step, above nothing but figures: some programs write a line per epoch.
std::optional<Heads> heads_without_key(std::string_view line, std::string_view next) {
  for (const char separator : {',', ';', '\t'}) {
    auto names = rough_cells(line, separator), figures = rough_cells(next, separator);
    if (!names.empty() && names.back().empty()) names.pop_back();
    if (!figures.empty() && figures.back().empty()) figures.pop_back();
    if (names.size() < 2 || names.size() != figures.size()) continue;
    bool has_metric = false, is_table = false;
    for (const auto name : names) {
      const auto words = plain(without_quotes(name));
      const auto* const synonym = synonym_of(words);
      has_metric = has_metric || has_any(words, {"loss", "acc"});
      is_table = is_table || is_number_in_cell(name) ||
                 (synonym != nullptr && synonym->column == "workers") ||
                 Column::find(words) == Column("workers");
    }
    if (has_metric && !is_table && std::ranges::all_of(figures, is_number_in_cell))
      return Heads{.separator = separator, .has_key = false};
  }
  return std::nullopt;
}

bool may_have_key(std::string_view line) {
  for (const std::string_view word : {"epoch", "step", "iter", "update"})
    if (!std::ranges::search(line, word, [](char a, char b) {
           return std::tolower(static_cast<unsigned char>(a)) == b;
         }).empty())
      return true;
  return false;
}

/// The next line that is not empty.
std::string_view next_line(std::string_view rest) {
  while (!rest.empty())
    if (const auto line = take_line(rest); !trimmed(line).empty()) return line;
  return {};
}

/// Whether figures stand below the heads in `line`; other lines and the heads of other ranks may stand
/// between.
bool has_figures_below(const Heads& heads, std::string_view line, std::string_view rest) {
  constexpr int kMostBetween = 100;
  const auto body = line.substr(heads.prefix.size());
  const auto names = rough_cells(body, heads.separator);
  for (int between = 0; between < kMostBetween && !rest.empty(); ++between) {
    const auto next = take_line(rest);
    const auto skipped = length_of_prefix(next, heads.prefix);
    if (!skipped || next.substr(*skipped) == body || trimmed(next).empty()) continue;
    const auto figures = rough_cells(next.substr(*skipped), heads.separator);
    if (names.size() != figures.size()) {
      if (heads.prefix.empty()) return false;
      continue;
    }
    for (std::size_t i = 0; i < names.size(); ++i)
      if (metric_key_of(last_word_of_prefix(without_quotes(names[i])))) return is_number_in_cell(figures[i]);
  }
  return false;
}

std::optional<Heads> find_heads(std::string_view text) {
  std::size_t number = 0, passed = 0;
  std::string first;
  for (auto rest = text; !rest.empty();) {
    const auto at = text.size() - rest.size();
    auto line = take_line(rest);
    ++number;
    if (trimmed(line).empty()) continue;
    const bool is_first = passed == 0;
    // A comment may hold the heads: "# epoch,loss".
    auto heads = may_have_key(line) ? heads_of(line) : std::nullopt;
    const bool is_comment = trimmed(line).front() == '#';
    const bool fits = heads && has_figures_below(*heads, line, rest);
    // Lines of JSON and of markup have such words as well.
    if (heads && !fits &&
        (!is_first || is_comment || heads->separator == ' ' || !heads->prefix.empty() ||
         line.find_first_of("{[<") != std::string_view::npos))
      heads.reset();
    if (!heads && is_first && !is_comment) heads = heads_without_key(line, next_line(rest));
    if (heads) {
      heads->at = at;
      heads->line = number;
      heads->before = passed;
      heads->first_before = first;
      return heads;
    }
    if (is_comment) continue;
    if (passed++ == 0) first = shown_line(line);
  }
  return std::nullopt;
}

/// The lines from the heads on without the text of the launcher; lines without it, and those of other ranks,
/// are left empty, so that the numbers stay.
std::string body_of(std::string_view text, const Heads& heads, MetricLog& log) {
  std::string body;
  FirstRank ranks(text.substr(heads.at));
  std::size_t left_out = 0, number = heads.line;
  std::string first;
  for (auto rest = text.substr(heads.at); !rest.empty(); ++number) {
    const auto line = take_line(rest);
    const auto skipped = length_of_prefix(line, heads.prefix);
    if (skipped && ranks.takes(line.substr(0, *skipped))) {
      body += line.substr(*skipped);
    } else if (!skipped && !trimmed(line).empty() && ++left_out == 1) {
      first = fmt::format("line {}: '{}'", number, shown_line(line));
    }
    body += '\n';
  }
  if (auto note = ranks.note(); !note.empty()) log.notes.push_back(std::move(note));
  if (left_out > 0)
    log.notes.push_back(fmt::format("{} without the beginning '{}' of the others left out, the first in {}",
                                    base::counted(left_out, "line"), shown_line(heads.prefix), first));
  return body;
}

std::vector<CsvLine> lines_in_blanks(std::string_view text, std::size_t number) {
  std::vector<CsvLine> lines;
  for (; !text.empty(); ++number) {
    const auto line = take_line(text);
    CsvLine cells;
    for (const auto word : split_words(line))
      cells.push_back({std::string(word), number, static_cast<std::size_t>(word.data() - line.data()) + 1});
    if (!cells.empty()) lines.push_back(std::move(cells));
  }
  return lines;
}

/// Names without quotes and blanks; the first without the mark of a comment.
std::vector<std::size_t> names_of(CsvLine heads, MetricLog& log) {
  while (heads.size() > 1 && trimmed(heads.back().text).empty()) heads.pop_back();
  std::vector<std::size_t> names;
  for (const auto& cell : heads) {
    auto name = trimmed(cell.text);
    if (&cell == &heads.front() && name.starts_with('#')) name = trimmed(name.substr(1));
    names.push_back(log.number_of(std::string(name)));
  }
  return names;
}

/// Whether the line repeats the heads, as where a run was appended: its key is the name of a key.
bool are_heads(const CsvLine& cells, const std::vector<std::size_t>& names, const MetricLog& log) {
  for (std::size_t i = 0; i < std::min(cells.size(), names.size()); ++i)
    if (metric_key_of(log.names[names[i]]) && metric_key_of(trimmed(cells[i].text))) return true;
  return false;
}

}  // namespace

std::string_view last_word_of_prefix(std::string_view cell) {
  if (metric_key_of(cell)) return cell;
  if (const auto end = cell.find_last_of(":]>|# \t"); end != std::string_view::npos)
    if (const auto word = cell.substr(end + 1); metric_key_of(word)) return word;
  return cell;
}

bool has_metrics_csv(std::string_view text) { return find_heads(text).has_value(); }

MetricLog metrics_of_csv(std::string_view text, const std::string& where) {
  MetricLog log;
  const auto heads = find_heads(text);
  if (!heads)
    base::fail(ErrorKind::data, "{}: no line of it names the columns, one of them 'epoch' or 'step'", where);
  if (heads->before > 0)
    log.notes.push_back(fmt::format("{} before the columns left out, the first: '{}'",
                                    base::counted(heads->before, "line"), heads->first_before));
  const auto body = heads->prefix.empty() ? std::string(text.substr(heads->at)) : body_of(text, *heads, log);
  auto lines =
      heads->separator == ' ' ? lines_in_blanks(body, heads->line) : read_csv(body, where, heads->line);
  log.has_decimal_commas = heads->separator == ';';
  if (lines.empty()) return log;
  if (heads->has_key && std::ranges::none_of(lines.front(), [](const CsvCell& cell) {
        return metric_key_of(trimmed(last_word_of_prefix(cell.text))).has_value();
      }))
    base::fail(
        ErrorKind::data,
        "{}: its header has no column 'epoch' or 'step'; name one so, or look for a misplaced quote in the header",
        where);
  auto names = names_of(lines.front(), log);
  for (std::size_t i = 1; i < lines.size(); ++i) {
    auto& cells = lines[i];
    if (trimmed(cells.front().text).starts_with('#')) continue;
    if (are_heads(cells, names, log)) {
      names = names_of(cells, log);
      log.behind_heads.push_back(log.entries.size());
      continue;
    }
    while (cells.size() > names.size() && trimmed(cells.back().text).empty()) cells.pop_back();
    if (cells.size() != names.size())
      base::fail(ErrorKind::data, "{}:{}: the line has {} cells, but there are {} columns; {}", where,
                 cells.front().line, cells.size(), names.size(),
                 cells.size() > names.size()
                     ? "a cell with a comma needs quotes, and other columns need a line with their names"
                 : i + 1 == lines.size() ? "it is the last one: complete it, or remove it"
                                         : "write its empty cells too");
    std::vector<MetricCell> entry;
    for (std::size_t k = 0; k < cells.size(); ++k)
      if (auto value = trimmed(cells[k].text); !value.empty())
        entry.push_back({names[k], std::string(value), cells[k].line, cells[k].column});
    if (!entry.empty()) log.entries.push_back(std::move(entry));
  }
  return log;
}

}  // namespace paceline::table
