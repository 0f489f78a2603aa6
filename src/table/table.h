#pragma once

/// `paceline-table-1`: a few figures of somebody's measurement, each with the digits that were printed; much
/// may be unknown. Measurements of other programs are such tables, never records. First what reads them: CSV,
/// columns, words.

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <ranges>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/csv.h"
#include "base/text.h"

namespace paceline::table {

using base::csv_cell;
using base::csv_separator;
using base::CsvCell;
using base::CsvLine;
using base::read_csv;
using base::take_line;
using base::trimmed;

// The columns of `paceline-table-1`: what a row can say about a measurement by any program. docs/check.md
// has their meanings and examples.
//
// A new column is a row here; the reader, templates and errors with the nearest name use this table.

enum class ColumnKind : std::uint8_t {
  text,    ///< any words
  word,    ///< one of `words`
  words,   ///< several of `words`, separated by blanks
  count,   ///< an integer of at least 0, known exactly
  number,  ///< at least 0; known to half a unit of its last printed digit
  part,    ///< a number between 0 and 1
};

/// The role of a column when two rows of one study are compared.
enum class ColumnRole : std::uint8_t {
  name,           ///< identifies the row
  configuration,  ///< what was run: rows that agree in all of these measured the same
  condition,      ///< how it was measured
  figure,         ///< the result
  claim,          ///< what the source says about the result
};

struct ColumnRow {
  std::string_view name;
  ColumnKind kind;
  ColumnRole role;
  std::string_view words = {};  ///< for `word` and `words`, separated by blanks
};

namespace column_table {

using enum ColumnKind;
using enum ColumnRole;

inline constexpr auto kRows = std::to_array<ColumnRow>({
    {"run", text, name},
    {"program", text, configuration},
    {"model", text, configuration},
    {"device", text, configuration},
    {"nodes", count, configuration},
    {"workers", count, configuration},
    {"repeat", count, name},
    {"seed", count, name},
    {"local_batch", count, configuration},
    {"global_batch", count, configuration},
    {"batch", count, configuration},
    {"train_samples", count, configuration},
    {"test_samples", count, configuration},
    {"classes", count, configuration},
    {"epochs", number, configuration},
    {"steps", count, figure},
    {"updates", count, figure},
    {"time_s", number, figure},
    {"time_of", word, configuration, "step epoch run"},
    {"covers", words, configuration, "data copy compute communication update evaluation startup"},
    {"excludes", words, configuration, "data copy compute communication update evaluation startup"},
    {"statistic", word, condition, "single mean median best"},
    {"repeats", count, condition},
    {"spread_s", number, condition},
    {"spread_is", word, condition, "sd se range ci95"},
    {"warmup", count, condition},
    {"clock", word, condition, "device host"},
    {"rate_per_s", number, figure},
    {"rate_of", word, configuration, "all worker"},
    {"compute_s", number, figure},
    {"communication_s", number, figure},
    {"data_wait_s", number, figure},
    {"other_s", number, figure},
    {"communication_is", word, condition, "exposed total residual"},
    {"scaling", word, configuration, "weak strong"},
    {"baseline", text, claim},
    {"claimed_speedup", number, claim},
    {"claimed_efficiency", number, claim},
    {"claim", text, claim},
    {"best", word, claim, "yes no"},
    {"parameters", number, configuration},
    {"element_bytes", count, configuration},
    {"message_bytes", number, configuration},
    {"algorithm", text, configuration},
    {"claimed_bandwidth", number, claim},
    {"bandwidth_unit", text, claim},
    {"bandwidth_is", word, claim, "sent algbw busbw"},
    {"wrong_elements", count, figure},
    {"link", number, configuration},
    {"link_unit", text, configuration},
    {"link_is", word, configuration, "one-way both-ways"},
    {"claimed_utilisation", part, claim},
    {"loss", number, figure},
    {"accuracy", part, figure},
    {"quality_of", text, configuration},
    {"seeds", count, condition},
    {"accuracy_sd", number, condition},
    {"learning_rate", number, configuration},
    {"optimizer", text, configuration},
    {"flops_per_sample", number, configuration},
    {"peak_flops", number, configuration},
    {"utilisation", part, figure},
    {"transfer_s", number, figure},        // part of the communication: bytes move
    {"late_peer_s", number, figure},       // part of it: waiting for a later worker
    {"update_s", number, figure},          // part of the time: the optimizer
    {"not_attributed_s", number, figure},  // part of the time: unknown
});

constexpr std::size_t row_of(std::string_view name) {
  std::size_t row = 0;
  while (row < kRows.size() && kRows[row].name != name) ++row;
  return row;
}

/// Declared only: a call in a constant expression is an error, which shows this name and the column.
void this_name_is_no_column_of_the_table();

}  // namespace column_table

/// A column, as a reference to its row. Column("time_s") compiles because there is a column of that name.
class Column {
 public:
  consteval Column(const char* name) : row_(column_table::row_of(name)) {
    if (row_ == count()) column_table::this_name_is_no_column_of_the_table();
  }
  [[nodiscard]] static constexpr std::size_t count() { return column_table::kRows.size(); }
  [[nodiscard]] static constexpr Column at(std::size_t row) { return Column(row); }
  [[nodiscard]] static constexpr auto all() {
    return std::views::iota(std::size_t{0}, count()) | std::views::transform(&Column::at);
  }
  [[nodiscard]] static constexpr std::optional<Column> find(std::string_view name) {
    const auto row = column_table::row_of(name);
    return row == count() ? std::nullopt : std::optional(at(row));
  }

  [[nodiscard]] constexpr std::size_t row() const { return row_; }
  [[nodiscard]] constexpr std::string_view name() const { return column_table::kRows[row_].name; }
  [[nodiscard]] constexpr ColumnKind kind() const { return column_table::kRows[row_].kind; }
  /// Whether its cells are numbers.
  [[nodiscard]] constexpr bool is_number() const { return kind() >= ColumnKind::count; }
  [[nodiscard]] constexpr ColumnRole role() const { return column_table::kRows[row_].role; }
  [[nodiscard]] constexpr std::string_view words() const { return column_table::kRows[row_].words; }

  friend constexpr bool operator==(Column, Column) = default;

 private:
  explicit constexpr Column(std::size_t row) : row_(row) {}
  std::size_t row_;
};

/// Prefix of columns for settings of a program: "setting.precision".
inline constexpr std::string_view kSettingPrefix = "setting.";

inline constexpr std::string_view kBlanks = " \t\r\n";

/// The words of `text`, separated by blanks.
[[nodiscard]] inline std::vector<std::string_view> split_words(std::string_view text) {
  std::vector<std::string_view> words;
  for (std::size_t at = text.find_first_not_of(kBlanks); at != std::string_view::npos;) {
    const auto end = text.find_first_of(kBlanks, at);
    words.push_back(text.substr(at, end - at));
    at = end == std::string_view::npos ? end : text.find_first_not_of(kBlanks, end);
  }
  return words;
}

/// The parts of `text` between separators, without blanks at their ends: one more than there are separators.
[[nodiscard]] inline std::vector<std::string_view> split_at(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const auto end = std::min(text.find(separator, at), text.size());
    parts.push_back(trimmed(text.substr(at, end - at)));
    at = end + 1;
  }
  return parts;
}

/// Whether one of the words stands in `text`.
[[nodiscard]] inline bool has_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::any_of(words, [&](std::string_view word) { return text.find(word) != text.npos; });
}

/// Whether `text` is one of the words.
[[nodiscard]] inline bool is_any(std::string_view text, std::initializer_list<std::string_view> words) {
  return std::ranges::find(words, text) != words.end();
}

/// Whether `text` is digits only, at least one.
[[nodiscard]] inline bool is_whole(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

/// A number as it was printed.
struct Number {
  double value = 0;
  double half_unit = 0;  ///< of the last digit: 0.05 for "100.0", 500 for "1.2e+04"; 0 for counts
  std::string text;
};

/// "1,234,567 s" without its commas; nullopt if they are not between groups of three digits ("0,125").
[[nodiscard]] std::optional<std::string> without_groups(std::string_view text);
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
  [[nodiscard]] std::optional<double> value(Column column) const { return cells_[column.row()].value; }
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

// Reads a table as people have it: with their words for the columns ("GPUs", "Epoch time (s)"), with "1.88x",
// "94%", "120 min" and "1,655" in its cells, with empty columns of a spreadsheet, or as Markdown.

/// The same table in the columns of `paceline-table-1`.
struct OwnWords {
  std::string csv;  ///< each row in the line that it has in the source, second times at the end
  std::vector<std::size_t> lines;  ///< of each row in the source
  std::string note;  ///< "read as: GPUs = workers, Epoch time (s) = time_s with time_of = epoch; ..."
};

/// nullopt if the text is not such a table: all heads are columns already, neither workers nor a claim, or no
/// figure. Columns that have no counterpart become settings, or are left out if they are figures. Lines of
/// averages are left out. If there are times of epochs and of runs, a line gives a row for each. A batch that
/// grows with the workers is the global one; otherwise it stays "batch", which may be either. Times in other
/// units are converted with no more digits than they had; figures of an unknown unit are left out. A comma in
/// a file whose cells are separated by ';' is a decimal one.
[[nodiscard]] std::optional<OwnWords> in_our_columns(std::string_view text);

/// The tables of a file that holds several, each as the file with the lines of the others left empty: tables
/// of a Markdown text, or of a CSV with empty lines between them. The whole text, if that is one table.
[[nodiscard]] std::vector<std::string> split_tables(std::string_view text);

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
