#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "base/error.h"
#include "base/text.h"
#include "table/table.h"

namespace paceline::table {
namespace {

using base::ErrorKind;
using base::fail;

/// Half a unit of the last digit of "12.30e+4".
double half_unit_of(std::string_view digits) {
  const auto exponent_at = digits.find_first_of("eE");
  auto power = exponent_at == std::string_view::npos ? "" : digits.substr(exponent_at + 1);
  if (power.starts_with('+')) power.remove_prefix(1);
  const int exponent = base::to_number<int>(power).value_or(0);
  const auto mantissa = digits.substr(0, exponent_at);
  const auto point = mantissa.find('.');
  const auto decimals = point == std::string_view::npos ? 0 : static_cast<int>(mantissa.size() - point) - 1;
  return 0.5 * std::pow(10.0, exponent - decimals);
}

void require_word(Column column, std::string_view word) {
  const auto known = base::texts_of(split_words(column.words()), std::identity());
  if (std::ranges::find(known, word) == known.end())
    fail(ErrorKind::usage, "takes {} ({}), not '{}'{}",
         column.kind() == ColumnKind::word ? "one of its words" : "words with blanks between them",
         fmt::join(known, ", "), word, base::suggestion(word, known));
}

void require_range(Column column, double value, std::string_view text) {
  if (value < 0)
    fail(ErrorKind::usage,
         "is {}: a number below 0 has no meaning there; leave the cell empty where it is not known", text);
  if (column.kind() == ColumnKind::part && value > 1)
    fail(ErrorKind::usage, "must be a part of 1: write {:.6g} for {} %", value / 100, text);
  if (column.kind() == ColumnKind::count && value != std::round(value))
    fail(ErrorKind::usage, "must be a count, but {} is not a whole number", text);
}

/// Whether the column becomes a fact above the header: all rows have the same known text. Names and figures
/// remain columns.
bool is_fact(const Table& table, Column column) {
  if (table.rows.size() < 2) return false;
  if (column.role() != ColumnRole::configuration && column.role() != ColumnRole::condition) return false;
  const auto& first = table.rows.front().text(column);
  return !first.empty() &&
         std::ranges::all_of(table.rows, [&](const Row& row) { return row.text(column) == first; });
}

bool is_said(const Table& table, Column column) {
  return std::ranges::any_of(table.rows,
                             [&](const Row& row) { return row.knows(column) || row.is_unknown(column); });
}

std::string fact_line(Column column, const std::string& text) {
  if (column.is_number()) return fmt::format("# {} = {}\n", column.name(), text);
  std::string plain = text;
  std::ranges::replace(plain, '"', '\'');
  return fmt::format("# {} = \"{}\"\n", column.name(), plain);
}

struct Template {
  std::string_view name, comment, columns;
  std::string_view rows;
};

constexpr Template kTemplates[] = {
    {"scaling",
     "Times or rates on several numbers of workers, and what is claimed about them. `time_of` says what "
     "time_s is of; `scaling` is weak (local_batch stays) or strong (global_batch stays).",
     "run,workers,local_batch,train_samples,time_s,time_of,scaling,repeats,spread_s,spread_is,compute_s,communication_s,"
     "communication_is,claimed_speedup,claimed_efficiency",
     "n1,1,128,50000,100.0,epoch,weak,3,0.8,sd,99.2,0,exposed,1.00,1.00\n"
     "n4,4,128,50000,27.9,epoch,weak,3,0.4,sd,24.9,2.3,exposed,3.58,0.90\n"},
    {"communication",
     "Bytes, seconds and the bandwidth that is claimed. `bandwidth_is`: sent (by a rank), algbw (X / t) or busbw (algbw x "
     "2(N-1)/N); `link` is what the specification says.",
     "run,workers,local_batch,train_samples,parameters,element_bytes,communication_s,time_of,algorithm,claimed_bandwidth,"
     "bandwidth_unit,bandwidth_is,link,link_unit,link_is,claimed_utilisation",
     "n2,2,128,50000,11173962,4,2.90,epoch,ring,3.01,GB/s,busbw,12.5,GB/s,one-way,0.24\n"
     "n4,4,128,50000,11173962,4,2.10,epoch,ring,3.13,GB/s,busbw,12.5,GB/s,one-way,0.25\n"},
    {"batches", "Times or rates against the batch on one number of workers.",
     "run,workers,local_batch,train_samples,time_s,time_of,rate_per_s,rate_of,statistic,repeats,warmup",
     "b32,1,32,50000,15.5,epoch,3230,all,median,3,10\n"
     "b128,1,128,50000,9.80,epoch,5100,all,median,3,10\n"},
    {"accuracy",
     "The result of a training. `accuracy` is a part of 1, `loss` the mean cross entropy of the same set.",
     "run,workers,global_batch,train_samples,test_samples,epochs,updates,seed,learning_rate,optimizer,loss,accuracy,"
     "quality_of,best",
     "small,1,128,50000,10000,30,11700,0,0.1,sgd,0.312,0.9312,test,yes\n"
     "large,4,2048,50000,10000,30,720,0,0.8,sgd,0.401,0.9017,test,no\n"},
};

/// Header and rows of these columns, and of every setting.
std::string lines_of(const Table& table, const std::vector<Column>& columns) {
  std::set<std::string> settings;
  for (const auto& row : table.rows)
    for (const auto& [name, value] : row.settings) settings.insert(name);
  auto cells = base::texts_of(columns, &Column::name);
  for (const auto& name : settings) cells.push_back(csv_cell(fmt::format("{}{}", kSettingPrefix, name)));
  std::string text = fmt::format("{}\n", fmt::join(cells, ","));
  for (const auto& row : table.rows) {
    cells.clear();
    for (const auto column : columns)
      cells.push_back(row.is_unknown(column) ? "unknown" : csv_cell(row.text(column)));
    for (const auto& name : settings) {
      const auto found = row.settings.find(name);
      cells.push_back(found == row.settings.end() ? "" : csv_cell(found->second));
    }
    text += fmt::format("{}\n", fmt::join(cells, ","));
  }
  return text;
}

}  // namespace

std::optional<std::string> without_groups(std::string_view text) {
  const auto first = text.find(',');
  if (first == std::string_view::npos) return std::string(text);
  const auto end = std::min(text.find_first_not_of("0123456789,"), text.size());
  if (first == 0 || first > 3 || text.front() == '0') return std::nullopt;  // 0,125 has a decimal comma
  for (auto at = first; at < end; at += 4)
    if (text[at] != ',' || at + 4 > end || text.substr(at + 1, 3).find(',') != std::string_view::npos)
      return std::nullopt;
  std::string plain(text.substr(0, end));
  std::erase(plain, ',');
  return plain.append(text.substr(end));
}

std::optional<Number> read_number(std::string_view text) {
  const auto plain = without_groups(text);
  if (!plain || plain->empty()) return std::nullopt;
  const auto value = base::to_number<double>(std::string_view(*plain).substr(plain->front() == '+' ? 1 : 0));
  if (!value || !std::isfinite(*value)) return std::nullopt;
  return Number{*value, half_unit_of(*plain), std::string(text)};
}

std::optional<Number> Row::number(Column column) const {
  const auto& cell = cells_[column.row()];
  if (!cell.value) return std::nullopt;
  return Number{*cell.value, cell.half_unit, cell.text};
}

bool Row::has_word(Column column, std::string_view word) const {
  const auto words = split_words(text(column));
  return std::ranges::find(words, word) != words.end();
}

std::string Row::name() const {
  const auto& run = text("run");
  if (run.empty()) return line > 0 ? fmt::format("line {}", line) : "a row";
  return knows("repeat") ? fmt::format("{} repeat {}", run, text("repeat")) : run;
}

void Row::set(Column column, std::string_view given) {
  Cell cell{.text = std::string(trimmed(given))};
  if (cell.text == "unknown" || cell.text == "not known") cell = {.is_unknown = true};
  if (column.kind() == ColumnKind::word && !cell.text.empty()) require_word(column, cell.text);
  if (column.kind() == ColumnKind::words)
    for (const auto word : split_words(cell.text)) require_word(column, word);
  if (column.is_number() && !cell.text.empty()) {
    const auto number = read_number(cell.text);
    if (!number)
      fail(
          ErrorKind::usage,
          "must be a number, but is '{}'; the unit is part of the column's name, and an empty cell means 'not "
          "known'",
          cell.text);
    require_range(column, number->value, cell.text);
    cell.value = number->value;
    cell.half_unit = column.kind() == ColumnKind::count ? 0 : number->half_unit;
  }
  cells_[column.row()] = std::move(cell);
}

void Row::set(Column column, double value) {
  // Rounding errors in the last places of a sum of doubles are not digits of the source.
  constexpr std::size_t kLongest = 14;
  auto text = fmt::format("{}", value);
  if (text.size() > kLongest) text = fmt::format("{:.12g}", value);
  set(column, text);
}

std::string to_csv(const Table& table) {
  std::string text = fmt::format("# schema = \"{}\"\n", Table::kSchema);
  for (const auto& note : table.notes) {
    std::string plain = note;
    std::replace(plain.begin(), plain.end(), '\n', ' ');
    std::replace(plain.begin(), plain.end(), '=', ':');  // otherwise it would be read as a fact
    text += fmt::format("# {}\n", plain);
  }
  std::vector<Column> columns;
  for (const auto column : Column::all()) {
    if (is_fact(table, column))
      text += fact_line(column, table.rows.front().text(column));
    else if (is_said(table, column))
      columns.push_back(column);
  }
  return text + lines_of(table, columns);
}

std::string to_plain_csv(const Table& table) {
  std::vector<Column> columns;
  for (const auto column : Column::all())
    if (is_said(table, column)) columns.push_back(column);
  return lines_of(table, columns);
}

std::vector<std::string> template_names() { return base::texts_of(kTemplates, &Template::name); }

std::string template_text(std::string_view name) {
  for (const auto& one : kTemplates)
    if (one.name == name)
      return fmt::format(
          "# schema = \"{}\"\n# {}\n# Keep the digits as they were printed; leave a cell empty where it is not known. The "
          "rows are invented: replace them.\n# What holds of all rows can stand above the header: # model = \"resnet18\"\n"
          "{}\n{}",
          Table::kSchema, one.comment, one.columns, one.rows);
  base::fail(base::ErrorKind::usage, "there is no template '{}'{}", name,
             base::suggestion(name, template_names()));
}

}  // namespace paceline::table
