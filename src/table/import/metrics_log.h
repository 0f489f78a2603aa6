#pragma once

/// What trainers log, read from CSV or JSON in any of the forms that programs write: entries with named
/// values, still as texts. metrics.cc makes a table of them.

#include <compare>
#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "table/own_cells.h"
#include "table/table.h"

namespace paceline::table {

struct MetricCell {
  std::size_t name;  ///< which of MetricLog::names
  std::string text;
  std::size_t line = 0, column = 0;  ///< where it stands; 0: not known
};

struct MetricLog {
  std::vector<std::string> names;  ///< of all values that any entry has
  std::vector<std::vector<MetricCell>> entries;
  std::vector<std::size_t> behind_heads;  ///< entries before which the columns were named again, in order
  std::vector<std::string> notes;         ///< what was left out, with its first line
  bool has_decimal_commas = false;

  /// The number of a name, which is added if it is new.
  std::size_t number_of(const std::string& name);
  /// "file:3:7", or "file: entry 3" where lines say nothing.
  [[nodiscard]] std::string place(const std::string& where, const MetricCell& cell) const;
  bool counts_entries = false;  ///< MetricCell::line counts entries, and no lines

 private:
  std::map<std::string, std::size_t, std::less<>> numbers_;
};

/// Makes each tag a name of its own, in the order of steps, if the log has an entry for each value: tag,
/// step, value.
void spread_values(MetricLog& log);

/// Whether a cell says that it has no value: "", "null", "NA", "-".
[[nodiscard]] bool is_missing(std::string_view text);

/// What tells entries apart.
enum class MetricKey : char { epoch, step };
/// The key that people call so: "Epoch", "_step", "global_step".
[[nodiscard]] std::optional<MetricKey> metric_key_of(std::string_view name);

/// Of an entry; both are missing in one that belongs to no row.
struct EntryKey {
  std::optional<double> epoch, step;
  friend auto operator<=>(const EntryKey&, const EntryKey&) = default;
};
/// What the rows of a log are made by.
struct KeyedLog {
  const MetricLog& log;
  std::vector<EntryKey> keys;      ///< of the entries
  std::set<std::size_t> not_told;  ///< names that tell no rows apart: keys, and what the table has as figures
  std::set<std::size_t> figures;   ///< names whose figures must not replace each other
};

// Columns of a table (metrics_columns.cc).

/// A column of the table, and what fills it.
struct Source {
  Column column;
  std::string unit;    ///< the user's; "": none
  OwnHeading heading;  ///< how to read its cells
};
using Sources = std::map<std::size_t, std::vector<Source>>;  ///< by the number of the name in the log

/// What fills which columns: names that are those of the table, and what the user named with --set, which
/// `table` notes as taken.
///
/// Errors   Error(usage) naming the option: no such column, or a unit that it cannot have
[[nodiscard]] Sources sources_of(const MetricLog& log, const std::map<std::string, std::string>& given,
                                 Table& table);

// Rows of a log (metrics_rows.cc): by which columns its entries are told apart, and where a run starts anew.

/// Where an entry belongs.
struct EntryPlace {
  std::vector<std::string> told;  ///< its values of the telling columns, "" where it has none
  std::size_t run = 1;            ///< among those with the same values
  bool starts_anew = false;       ///< it is the first of another run
  bool is_later = false;          ///< its step is after those of the same figures
  bool is_late = false;           ///< it belongs before figures of the same names
};
/// Places in the order of the entries. A run starts anew where the key of a figure goes back to one that had
/// the figure, or goes back and stays back. An entry that fills in figures of an earlier epoch or step, as a
/// slow evaluation does, belongs to it.
[[nodiscard]] std::vector<EntryPlace> places_of(const KeyedLog& log, std::span<const std::size_t> telling);
/// The columns whose values make rows of their own of entries of one epoch or step: those that name parts of
/// the set ("train", "val"), and texts, or integers of a column such as "rank" or "fold", without which
/// figures would replace each other. Clocks, remarks, paths and texts that are the same in all do not.
[[nodiscard]] std::vector<std::size_t> telling_columns(const KeyedLog& log);
/// "training", "validation", "test" or "evaluation": the part of the set that a text such as "val" or
/// "train_epoch" names; "" if it names none or several.
[[nodiscard]] std::string_view part_of_set(std::string_view text);

/// "# epoch" and "[rank0]: epoch" without what stands before the last word.
[[nodiscard]] std::string_view last_word_of_prefix(std::string_view cell);
/// The number of the rank in what a launcher wrote before a line: "[rank3]:", "[default3]:",
/// "[1,3]<stdout>:", "3: ".
[[nodiscard]] std::optional<int> rank_in(std::string_view prefix);

/// Lines of ranks other than the first one that was met are left out.
class FirstRank {
 public:
  /// Numbers that rise by one from each of the lines of `text` to the next count lines, as `grep -n` does,
  /// and are of no ranks: all lines count.
  explicit FirstRank(std::string_view text);

  /// Whether a line behind `prefix` counts.
  [[nodiscard]] bool takes(std::string_view prefix);
  /// "" if no line was left out.
  [[nodiscard]] std::string note() const;

 private:
  std::optional<int> rank_;
  bool are_lines_counted_ = false;
  std::size_t left_out_ = 0;
};

/// Whether a text has a line of heads that names epochs or steps, above lines of figures.
[[nodiscard]] bool has_metrics_csv(std::string_view text);
/// Errors   Error(data) with `where` and the line: cells and heads that do not match, quotes that are not
/// closed
[[nodiscard]] MetricLog metrics_of_csv(std::string_view text, const std::string& where);

/// Whether a text is JSON of metrics, or has lines that are.
[[nodiscard]] bool has_metrics_json(std::string_view text);
/// Errors   Error(data) with `where`: no entry in it
[[nodiscard]] MetricLog metrics_of_json(std::string_view text, const std::string& where);

}  // namespace paceline::table
