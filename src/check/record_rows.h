#pragma once

/// Converts records to the form of other programs' measurements: each becomes a row of `paceline-table-1`
/// (table/table.h). `report --records-csv` writes them; `check` and other tools read them.

#include <span>

#include "measure/record.h"
#include "table/table.h"

namespace paceline::check {

/// The row of a complete record: configuration, mean seconds per step of the window and their parts (means
/// over ranks, so that they add up; without evaluations and checkpoints), communication, loss and accuracy at
/// the end of a training, and every setting as setting.NAME. No claims, since records have none. Numbers are
/// not rounded.
[[nodiscard]] table::Row row_of(const measure::Record& record);

/// The table of all complete records with a training: not those of kind "comm" and "evaluate", which belong
/// to other tables. Texts that a spreadsheet would read as a formula get an apostrophe in front.
[[nodiscard]] table::Table table_of_records(std::span<const measure::Record> records);

}  // namespace paceline::check
