#pragma once

/// `paceline-table-1`: a few figures of somebody's measurement, each with the digits that were printed; much
/// may be unknown. Measurements of other programs are such tables, never records.

#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "table/column.h"

namespace paceline::table {

/// A number as it was printed.
struct Number {
  double value = 0;
  double half_unit = 0;  ///< of the last digit: 0.05 for "100.0", 500 for "1.2e+04"; 0 for counts
  std::string text;
};

/// Parses a number; nullopt if `text` is not a number, is not finite or has other text after it. A ","
/// between groups of three digits is skipped, as in 1,234,567.
[[nodiscard]] std::optional<Number> read_number(std::string_view text);

class Row {
 public:
  std::size_t line = 0;                         ///< in its file, from 1; 0: none
  std::map<std::string, std::string> settings;  ///< by the name after "setting."

  /// Whether the cell has a value: it is neither empty nor "unknown".
  [[nodiscard]] bool knows(Column column) const { return !text(column).empty(); }
  [[nodiscard]] const std::string& text(Column column) const { return cells_[column.row()].text; }
  [[nodiscard]] std::optional<Number> number(Column column) const;
  [[nodiscard]] std::optional<double> value(Column column) const;
  /// Whether `word` is among the words of the cell.
  [[nodiscard]] bool has_word(Column column, std::string_view word) const;
  /// Whether the cell says "unknown"; then a value given for all rows does not fill it.
  [[nodiscard]] bool is_unknown(Column column) const { return cells_[column.row()].is_unknown; }
  /// Its `run`, with the repeat; "line 3" if it has none.
  [[nodiscard]] std::string name() const;

  /// Errors   Error(usage): the end of a sentence about what the column accepts; the caller adds the position
  void set(Column column, std::string_view text);
  /// Sets the shortest text that gives the number back, with at most 12 digits; for importers, whose sources
  /// are not rounded.
  void set(Column column, double value);

 private:
  struct Cell {
    std::string text;
    std::optional<double> value;
    double half_unit = 0;
    bool is_unknown = false;
  };
  std::array<Cell, Column::count()> cells_;
};

struct Table {
  static constexpr const char* kSchema = "paceline-table-1";
  std::string where;  ///< its file
  std::vector<Row> rows;
  std::vector<std::string> notes;  ///< an importer's sentences: what stays unknown, and why
  std::set<std::string> taken;     ///< values given by the user that the importer has used itself
};

/// Whether `text` looks like such a table: a CSV or TOML with one of its columns.
[[nodiscard]] bool looks_like_table(std::string_view text);

/// Parses a table. A baseline must be a run of the table, or one of `others`.
///
/// Errors   Error(data): file, line, column, what the column accepts or the nearest column, next step
[[nodiscard]] Table read_table(std::string_view text, const std::string& where,
                               const std::set<std::string>& others = {});

/// As CSV: values common to all rows above the header, then the columns that any row has. Notes are comments.
/// Unknown cells are "unknown".
[[nodiscard]] std::string to_csv(const Table& table);
/// The same without comments, every value in a column, for any program that reads CSV.
[[nodiscard]] std::string to_plain_csv(const Table& table);

/// The names of the templates: "scaling", "communication", "batches", "accuracy".
[[nodiscard]] std::vector<std::string> template_names();
/// A CSV with the columns that such a study needs, a comment on what to write where, and two invented rows.
///
/// Errors   Error(usage) with the nearest name
[[nodiscard]] std::string template_text(std::string_view name);

}  // namespace paceline::table
