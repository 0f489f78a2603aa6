#pragma once

/// `paceline-table-1`: few figures of somebody's measurement, each with the digits it was printed with, and
/// much that is not known. What other programs measured is such a table, never a record.

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
  double half_unit = 0;  ///< of the last digit: 0.05 of "100.0", 500 of "1.2e+04"; 0 of counts
  std::string text;
};

/// The number that `text` is; nothing where it is none, is not finite or has anything behind it. A ","
/// between groups of three digits is skipped, as in 1,234,567.
[[nodiscard]] std::optional<Number> read_number(std::string_view text);

class Row {
 public:
  std::size_t line = 0;                         ///< in its file, from 1; 0: it has none
  std::map<std::string, std::string> settings;  ///< by the name behind "setting."

  /// Whether the cell has a value. One that is empty, or "unknown", is not known.
  [[nodiscard]] bool knows(Column column) const { return !text(column).empty(); }
  [[nodiscard]] const std::string& text(Column column) const { return cells_[column.row()].text; }
  [[nodiscard]] std::optional<Number> number(Column column) const;
  [[nodiscard]] std::optional<double> value(Column column) const;
  /// Whether `word` is among the words of the cell.
  [[nodiscard]] bool has_word(Column column, std::string_view word) const;
  /// The cell says in words that it is not known: no fact of all rows fills it.
  [[nodiscard]] bool is_unknown(Column column) const { return cells_[column.row()].is_unknown; }
  /// Its `run`, with the repeat; "line 3" where it has none.
  [[nodiscard]] std::string name() const;

  /// Errors   Error(usage) with the end of a sentence that begins with the place: what the column takes
  void set(Column column, std::string_view text);
  /// The shortest text that gives the number back, with 12 digits at most; for importers, whose sources are
  /// not rounded.
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
  std::vector<std::string> notes;  ///< sentences of an importer: what stays unknown, and why
  std::set<std::string> taken;     ///< facts of the user that an importer has read itself
};

/// Whether `text` looks like one of the forms of the table: a CSV or TOML with one of its columns.
[[nodiscard]] bool looks_like_table(std::string_view text);

/// A baseline is a run of the table, or one of `others`.
///
/// Errors   Error(data): file, line, column, what the column takes or the nearest name of one, next step
[[nodiscard]] Table read_table(std::string_view text, const std::string& where,
                               const std::set<std::string>& others = {});

/// As CSV: facts of all rows above the header, then the columns that any row knows. Notes are comments. What
/// a row says is not known is "unknown".
[[nodiscard]] std::string to_csv(const Table& table);
/// The same without a comment, every fact a column: any program that reads CSV reads it.
[[nodiscard]] std::string to_plain_csv(const Table& table);

/// The names of the templates: "scaling", "communication", "batches", "accuracy".
[[nodiscard]] std::vector<std::string> template_names();
/// A CSV with the columns that such a study needs, a comment what to write where, and two invented rows.
/// Errors   Error(usage) with the nearest name
[[nodiscard]] std::string template_text(std::string_view name);

}  // namespace paceline::table
