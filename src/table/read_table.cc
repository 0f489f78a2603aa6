#include "table/table.h"

#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "table/import/metrics_log.h"

namespace paceline::table {
namespace {

using base::ErrorKind;
using base::fail;

/// A column of the file: one of the table's, or a setting.
struct Heading {
  std::optional<Column> column;
  std::string setting;  ///< the name after "setting."
};

struct Place {
  const std::string& where;
  std::size_t line, column;
  [[nodiscard]] std::string text() const { return fmt::format("{}:{}:{}", where, line, column); }
};

Heading heading_of(std::string_view name, const Place& place) {
  if (name.starts_with(kSettingPrefix) && name.size() > kSettingPrefix.size())
    return {.setting = std::string(name.substr(kSettingPrefix.size()))};
  if (const auto column = Column::find(name)) return {.column = column};
  const auto near = base::nearest_name(name, base::texts_of(Column::all(), &Column::name));
  fail(ErrorKind::data,
       "{}: there is no column '{}'{}; a column of your own is called setting.{}, and docs/check.md "
       "lists all",
       place.text(), name, near ? fmt::format("; did you mean '{}'?", *near) : "",
       name.empty() ? "NAME" : name);
}

void set_cell(Row& row, const Heading& heading, std::string_view text, const Place& place) {
  if (!heading.column) {
    if (!trimmed(text).empty()) row.settings[heading.setting] = std::string(trimmed(text));
    return;
  }
  try {
    row.set(*heading.column, text);
  } catch (const base::Error& error) {
    fail(ErrorKind::data, "{}: {} {}", place.text(), heading.column->name(), error.what());
  }
}

/// Fills in what holds for all rows, unless a row says otherwise itself.
void fill_from_facts(Row& row, const Row& facts) {
  for (const auto column : Column::all()) {
    if (!row.knows(column) && !row.is_unknown(column) && facts.knows(column))
      row.set(column, facts.text(column));
  }
  for (const auto& [name, text] : facts.settings) row.settings.try_emplace(name, text);
}

/// A fact that stands above the header: `# workers = 4` or `# model = "resnet18"`. Other comments are
/// ignored.
void take_fact(Row& facts, std::string_view line, const std::string& where, std::size_t number) {
  const auto body = trimmed(line.substr(1));
  const auto equals = body.find('=');
  if (equals == std::string_view::npos) return;
  const auto key = trimmed(body.substr(0, equals));
  if (key.empty() || key.find_first_of(kBlanks) != std::string_view::npos) return;
  auto value = trimmed(body.substr(equals + 1));
  if (value.size() > 1 && value.front() == '"') {
    const auto end = value.find('"', 1);
    if (end == std::string_view::npos)
      fail(ErrorKind::data, "{}:{}: the fact {} has no closing quote; write # {} = \"...\"", where, number,
           key, key);
    value = value.substr(1, end - 1);
  } else {
    value = trimmed(value.substr(0, value.find('#')));
  }
  if (key == "schema") {
    if (value != Table::kSchema)
      fail(ErrorKind::data,
           "{}:{}: the schema is '{}', but this program reads {}; use a newer version of "
           "it",
           where, number, value, Table::kSchema);
    return;
  }
  const Place place{where, number, 1};
  set_cell(facts, heading_of(key, place), value, place);
}

std::vector<Heading> read_header(const CsvLine& line, const std::string& where) {
  std::vector<Heading> headings;
  std::set<std::string> names;
  for (const auto& cell : line) {
    const Place place{where, cell.line, cell.column};
    if (!names.insert(cell.text).second)
      fail(ErrorKind::data, "{}: the column '{}' occurs twice; leave one of them out", place.text(),
           cell.text);
    headings.push_back(heading_of(trimmed(cell.text), place));
  }
  return headings;
}

Table read_csv_table(std::string_view text, const std::string& where) {
  Table table{.where = where};
  Row facts;
  std::size_t number = 0;
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  while (!text.empty()) {
    auto rest = text;
    const auto line = trimmed(take_line(rest));
    if (!line.empty() && line.front() != '#') break;
    ++number;
    if (!line.empty()) take_fact(facts, line, where, number);
    text = rest;
  }
  const auto lines = read_csv(text, where, number + 1);
  if (lines.empty())
    fail(ErrorKind::data,
         "{}: the file has no header; 'paceline check --template scaling' prints a table to fill in", where);
  const auto headings = read_header(lines.front(), where);
  for (std::size_t i = 1; i < lines.size(); ++i) {
    const auto& cells = lines[i];
    if (cells.front().text.starts_with('#')) continue;
    if (cells.size() != headings.size())
      fail(ErrorKind::data,
           "{}:{}: the row has {} cells, but the header has {}; a text with a comma needs quotes", where,
           cells.front().line, cells.size(), headings.size());
    Row row;
    row.line = cells.front().line;
    for (std::size_t j = 0; j < cells.size(); ++j)
      set_cell(row, headings[j], cells[j].text, {where, cells[j].line, cells[j].column});
    fill_from_facts(row, facts);
    table.rows.push_back(std::move(row));
  }
  return table;
}

/// The text of a number as written in the file, with its digits; for a string the text between the quotes.
std::string source_text(const toml::node& node, const std::vector<std::string_view>& lines) {
  if (const auto* text = node.as_string()) return text->get();
  const auto& source = node.source();
  if (source.begin.line == 0 || source.begin.line > lines.size()) return {};
  auto line = lines[source.begin.line - 1];
  line.remove_prefix(std::min<std::size_t>(source.begin.column - 1, line.size()));
  if (source.end.line == source.begin.line) line = line.substr(0, source.end.column - source.begin.column);
  std::string plain(trimmed(line));
  std::erase(plain, '_');
  return plain;
}

void take_toml(Row& row, const toml::table& from, const std::string& where,
               const std::vector<std::string_view>& lines, const std::string& prefix = "") {
  for (const auto& [key, node] : from) {
    const Place place{where, key.source().begin.line, key.source().begin.column};
    const std::string name = prefix + std::string(key.str());
    if (const auto* inner = node.as_table(); inner != nullptr && name == "setting") {
      take_toml(row, *inner, where, lines, std::string(kSettingPrefix));
      continue;
    }
    if (!node.is_string() && !node.is_number() && !node.is_boolean())
      fail(ErrorKind::data, "{}: {} must be a number or a text in quotes", place.text(), name);
    set_cell(row, heading_of(name, place), source_text(node, lines), place);
  }
}

Table read_toml_table(std::string_view text, const std::string& where) {
  toml::table file;
  try {
    file = toml::parse(text, where);
  } catch (const toml::parse_error& error) {
    fail(ErrorKind::data, "{}:{}:{}: {}", where, error.source().begin.line, error.source().begin.column,
         error.description());
  }
  std::vector<std::string_view> lines;
  for (auto rest = text; !rest.empty();) lines.push_back(take_line(rest));
  Table table{.where = where};
  Row facts;
  for (const auto& [key, node] : file) {
    const Place place{where, key.source().begin.line, key.source().begin.column};
    const auto* rows = node.as_array();
    if (key == "facts" && node.is_table()) {
      take_toml(facts, *node.as_table(), where, lines);
    } else if (key == "row" && rows != nullptr) {
      for (const auto& one : *rows) {
        if (!one.is_table()) fail(ErrorKind::data, "{}: a row must be written as [[row]]", place.text());
        Row row;
        row.line = one.source().begin.line;
        take_toml(row, *one.as_table(), where, lines);
        table.rows.push_back(std::move(row));
      }
    } else if (key == "schema" && node.is_string() && node.as_string()->get() == Table::kSchema) {
      continue;
    } else {
      fail(ErrorKind::data, "{}: a table has [facts], [[row]] and schema = \"{}\", but no '{}'", place.text(),
           Table::kSchema, key.str());
    }
  }
  for (auto& row : table.rows) fill_from_facts(row, facts);
  return table;
}

bool looks_like_toml(std::string_view text) {
  return text.find("[[row]]") != std::string_view::npos &&
         (text.starts_with("[[row]]") || text.find("\n[[row]]") != std::string_view::npos);
}

void require_rows(const Table& table, const std::set<std::string>& others) {
  if (table.rows.empty())
    fail(ErrorKind::data, "{}: the table has no rows; give one for each measurement", table.where);
  std::vector<std::string> runs;
  for (const auto& row : table.rows)
    if (row.knows("run")) runs.push_back(row.text("run"));
  const std::set<std::string> known(runs.begin(), runs.end());
  for (const auto& row : table.rows)
    if (row.knows("baseline") && !known.contains(row.text("baseline")) &&
        !others.contains(row.text("baseline")))
      fail(ErrorKind::data, "{}:{}: the baseline '{}' is not a run of this table{}", table.where, row.line,
           row.text("baseline"), base::suggestion(row.text("baseline"), runs));
}

}  // namespace

bool looks_like_table(std::string_view text) {
  if (looks_like_toml(text)) return true;
  const auto whole = text;
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  if (text.find(Table::kSchema) != std::string_view::npos && text.starts_with('#')) return true;
  while (!text.empty()) {
    const auto line = trimmed(take_line(text));
    if (line.empty() || line.front() == '#') continue;
    const auto names = split_at(line, csv_separator(line));
    std::size_t known = 0;
    bool has_key = false;  // as a trainer's metrics have, unless people's own words for a table say otherwise
    for (const auto name : names) {
      if (name == "epoch" || name == "step") return false;  // a trainer's metrics
      has_key = has_key || metric_key_of(last_word_of_prefix(name));
      known += Column::find(name) || name.starts_with(kSettingPrefix) ? 1 : 0;
    }
    return (known > 0 && 2 * known >= names.size() && !has_key) || in_our_columns(whole).has_value();
  }
  return false;
}

Table read_table(std::string_view text, const std::string& where, const std::set<std::string>& others) {
  const bool is_toml = looks_like_toml(text);
  const auto own_words = is_toml ? std::nullopt : in_our_columns(text);
  auto table =
      is_toml ? read_toml_table(text, where) : read_csv_table(own_words ? own_words->csv : text, where);
  if (own_words) {
    table.notes.push_back(own_words->note);
    for (std::size_t i = 0; i < std::min(table.rows.size(), own_words->lines.size()); ++i)
      table.rows[i].line = own_words->lines[i];
  }
  require_rows(table, others);
  return table;
}

}  // namespace paceline::table
