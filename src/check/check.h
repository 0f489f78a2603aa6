#pragma once

/// `paceline check`: applies the catalogue of rules to a table or to records.

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "measure/record.h"
#include "table/table.h"

namespace paceline::check {

// Converts records to the form of other programs' measurements: each becomes a row of `paceline-table-1`
// (table/table.h). `report --records-csv` writes them; `check` and other tools read them.

/// The row of a complete record: configuration, mean seconds per step of the window and their parts (means
/// over ranks, so that they add up; without evaluations and checkpoints), communication, loss and accuracy at
/// the end of a training, and every setting as setting.NAME. No claims, since records have none. Numbers are
/// not rounded.
[[nodiscard]] table::Row row_of(const measure::Record& record);

/// The table of all complete records with a training: not those of kind "comm" and "evaluate", which belong
/// to other tables. Texts that a spreadsheet would read as a formula get an apostrophe in front.
[[nodiscard]] table::Table table_of_records(std::span<const measure::Record> records);

// The result of `paceline check`: findings, and what could not be checked.

enum class Severity {
  note,     ///< worth knowing; nothing is wrong
  warning,  ///< may be wrong, or is weaker than it looks
  error,    ///< contradicts itself, or follows from one known mistake
};
[[nodiscard]] std::string_view name(Severity severity);

/// A figure with the range that is compatible with what was printed and measured.
struct Figure {
  double value = 0, low = 0, high = 0;
};

struct Finding {
  std::string rule;  ///< "ratio.speedup"
  Severity severity = Severity::note;
  std::string cause = {};           ///< findings of one rule with one cause are one mistake
  std::vector<std::string> rows;    ///< names of the runs
  std::string printed;              ///< as in the source; "" if no single figure is meant
  std::optional<Figure> corrected;  ///< what it should have been, in the unit of `printed`
  std::string sentence;             ///< one plain sentence with the numbers
  std::string where;                ///< the file
  std::size_t line = 0;             ///< of its first row; 0: none
  std::vector<Finding> also = {};   ///< the same mistake elsewhere, filled by one_per_mistake()
};

/// A rule that could not be applied, or not fully, and what it needs.
struct NotChecked {
  std::string rule;
  std::string missing;  ///< "column workers", "columns time_s or rate_per_s", "in part, without time_of"
};

struct Result {
  std::vector<Finding> findings;        ///< errors first, then in the order of the rows
  std::vector<NotChecked> not_checked;  ///< in the order of the catalogue
  /// The table claims speedups or efficiencies, and nothing in it allows to compute one: its rules passed
  /// because they had nothing to compare.
  bool has_unchecked_claims = false;
  std::size_t compared = 0;  ///< figures that were held against others; 0: nothing was compared
  [[nodiscard]] std::size_t number_of(Severity severity) const;
};

/// Applies every rule to a table. Errors come first.
[[nodiscard]] Result check_table(const table::Table& table);

/// The same for records: compares what they say with the ledger and with each other, and applies the rules
/// that a table made from them allows.
[[nodiscard]] Result check_records(std::span<const measure::Record> records);

/// Figures of one configuration that differ between tables of one call: warnings, since what differs may
/// stand in the text around them.
[[nodiscard]] std::vector<Finding> check_between(std::span<const table::Table> tables);

/// Adds to a table the records that its rows name as their baselines, with step time and images per second.
/// The caller asserts that both were measured on one machine; their device stays unknown.
[[nodiscard]] table::Table with_named_records(table::Table table, std::span<const measure::Record> records);

/// The first row whose baseline is a record and not a row of the table, or nullptr.
[[nodiscard]] const table::Row* row_over_record(const table::Table& table,
                                                std::span<const measure::Record> records);

/// The same with one finding for each mistake: findings of one rule, severity, cause and file become the
/// first of them, which names the others.
[[nodiscard]] Result one_per_mistake(Result result);

/// Sorts errors before warnings before notes; otherwise the order stays.
void sort_findings(Result& result);

}  // namespace paceline::check
