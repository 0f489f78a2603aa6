#pragma once

/// `paceline check`: the catalogue of rules over a table, and over records.

#include <span>

#include "analysis/check/finding.h"
#include "measure/record.h"
#include "table/table.h"

namespace paceline::analysis::rules {

/// Holds a table against every rule. Errors first.
[[nodiscard]] Result check_table(const table::Table& table);

/// The same for records: what they say of themselves against the ledger and each other, and the rules that a
/// table of them allows.
[[nodiscard]] Result check_records(std::span<const measure::Record> records);

/// Adds to a table the records that its rows name as their baseline: of a step, and of images a second. Both
/// were measured on one machine, says who calls this; their device is left open.
[[nodiscard]] table::Table with_named_records(table::Table table, std::span<const measure::Record> records);

/// The first row of the table whose baseline is a record and no row of the table, or nullptr.
[[nodiscard]] const table::Row* row_over_record(const table::Table& table,
                                                std::span<const measure::Record> records);

/// Errors before warnings before notes; else the order stays.
void sort_findings(Result& result);

}  // namespace paceline::analysis::rules
