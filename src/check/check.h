#pragma once

/// `paceline check`: applies the catalogue of rules to a table or to records.

#include <span>

#include "check/finding.h"
#include "measure/record.h"
#include "table/table.h"

namespace paceline::check {

/// Applies every rule to a table. Errors come first.
[[nodiscard]] Result check_table(const table::Table& table);

/// The same for records: compares what they say with the ledger and with each other, and applies the rules
/// that a table made from them allows.
[[nodiscard]] Result check_records(std::span<const measure::Record> records);

/// Adds to a table the records that its rows name as their baselines, with step time and images per second.
/// The caller asserts that both were measured on one machine; their device stays unknown.
[[nodiscard]] table::Table with_named_records(table::Table table, std::span<const measure::Record> records);

/// The first row whose baseline is a record and not a row of the table, or nullptr.
[[nodiscard]] const table::Row* row_over_record(const table::Table& table,
                                                std::span<const measure::Record> records);

/// Sorts errors before warnings before notes; otherwise the order stays.
void sort_findings(Result& result);

}  // namespace paceline::check
