#pragma once

/// Records in the form in which measurements of other programs are read: a row of `paceline-table-1` each
/// (table/table.h). What `report --records-csv` writes, and `check` and other tools read.

#include <span>

#include "measure/record.h"
#include "table/table.h"

namespace paceline::analysis {

/// Of one record that is complete: which configuration, the mean seconds of a step of the window and their
/// parts (means over ranks, so that they add up; without evaluations and checkpoints), what was communicated,
/// loss and accuracy at the end of a training, and every setting as setting.NAME. No claims, since records
/// hold none. Numbers are not rounded.
[[nodiscard]] table::Row row_of(const measure::Record& record);

/// Of all that are complete and trained something: not those of kind "comm" and "evaluate", which other
/// tables hold. Texts that a spreadsheet would take for a formula have an apostrophe in front.
[[nodiscard]] table::Table table_of_records(std::span<const measure::Record> records);

}  // namespace paceline::analysis
