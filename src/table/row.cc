#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/error.h"
#include "base/nearest.h"
#include "table/table.h"
#include "table/words.h"

namespace paceline::table {
namespace {

using base::ErrorKind;
using base::fail;

/// 1,234,567 without its commas; nullopt if the commas are not between groups of three digits.
std::optional<std::string> without_groups(std::string_view text) {
  const auto first = text.find(',');
  if (first == std::string_view::npos) return std::string(text);
  const auto end = std::min(text.find_first_not_of("0123456789,"), text.size());
  if (first == 0 || first > 3) return std::nullopt;
  for (auto at = first; at < end; at += 4)
    if (text[at] != ',' || at + 4 > end || text.substr(at + 1, 3).find(',') != std::string_view::npos)
      return std::nullopt;
  std::string plain(text);
  std::erase(plain, ',');
  return plain;
}

/// Half a unit of the last digit of "12.30e+4".
double half_unit_of(std::string_view digits) {
  const auto exponent_at = digits.find_first_of("eE");
  int exponent = 0;
  if (exponent_at != std::string_view::npos) {
    auto from = digits.data() + exponent_at + 1;
    if (*from == '+') ++from;
    std::from_chars(from, digits.data() + digits.size(), exponent);
  }
  const auto mantissa = digits.substr(0, exponent_at);
  const auto point = mantissa.find('.');
  const auto decimals = point == std::string_view::npos ? 0 : static_cast<int>(mantissa.size() - point) - 1;
  return 0.5 * std::pow(10.0, exponent - decimals);
}

std::string words_of(Column column) {
  std::string text;
  for (const auto word : split_words(column.words())) text += (text.empty() ? "" : ", ") + std::string(word);
  return text;
}

void require_word(Column column, std::string_view word) {
  std::vector<std::string> known;
  for (const auto one : split_words(column.words())) known.emplace_back(one);
  if (std::ranges::find(known, word) == known.end())
    fail(ErrorKind::usage, "takes {} ({}), not '{}'{}",
         column.kind() == ColumnKind::word ? "one of its words" : "words with blanks between them",
         words_of(column), word, base::suggestion(word, known));
}

void require_range(Column column, double value, std::string_view text) {
  if (value < 0)
    fail(ErrorKind::usage,
         "is {}: a number below 0 has no meaning there; leave the cell empty where it is not known", text);
  if (column.kind() == ColumnKind::part && value > 1)
    fail(ErrorKind::usage, "must be a part of 1: write {} for {} %", fmt::format("{:.6g}", value / 100),
         text);
  if (column.kind() == ColumnKind::count && value != std::round(value))
    fail(ErrorKind::usage, "must be a count, but {} is not a whole number", text);
}

}  // namespace

std::optional<Number> read_number(std::string_view text) {
  const auto plain = without_groups(text);
  if (!plain || plain->empty()) return std::nullopt;
  const char* begin = plain->data() + (plain->front() == '+' ? 1 : 0);
  const char* const end = plain->data() + plain->size();
  double value = 0;
  const auto [behind, failed] = std::from_chars(begin, end, value);
  if (failed != std::errc() || behind != end || !std::isfinite(value)) return std::nullopt;
  return Number{value, half_unit_of(*plain), std::string(text)};
}

std::optional<Number> Row::number(Column column) const {
  const auto& cell = cells_[column.row()];
  if (!cell.value) return std::nullopt;
  return Number{*cell.value, cell.half_unit, cell.text};
}

std::optional<double> Row::value(Column column) const { return cells_[column.row()].value; }

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
  if (!cell.text.empty()) {
    switch (column.kind()) {
      case ColumnKind::text:
        break;
      case ColumnKind::word:
        require_word(column, cell.text);
        break;
      case ColumnKind::words:
        for (const auto word : split_words(cell.text)) require_word(column, word);
        break;
      default: {
        const auto number = read_number(cell.text);
        if (!number)
          fail(ErrorKind::usage,
               "must be a number, but is '{}'; the unit is part of the column's name, and an empty cell "
               "means 'not known'",
               cell.text);
        require_range(column, number->value, cell.text);
        cell.value = number->value;
        cell.half_unit = column.kind() == ColumnKind::count ? 0 : number->half_unit;
      }
    }
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

}  // namespace paceline::table
