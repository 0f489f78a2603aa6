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

/// Errors before warnings before notes; else the order stays.
void sort_findings(Result& result);

}  // namespace paceline::analysis::rules
