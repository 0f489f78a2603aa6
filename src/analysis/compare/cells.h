#pragma once

/// Joins records into cells: one set-up with all its repeats.
///
/// Records belong to the same cell if their set-ups (setup.h) do not differ in anything: how the workers are
/// joined and placed, model, data, machine, settings, circumstances. So repeats can never hide a difference.
/// Every record but those of collectives is in exactly one cell: as a repeat, as the record that says why
/// nothing was measured, or as a lost one. A record that contradicts itself is lost, or makes a cell that is
/// "left out"; none of its figures is used. Failed records are listed with the repeats of their own version,
/// or are a cell if there are none.
///
/// Lifetime  cells refer to the records, which must outlive them

#include <span>
#include <vector>

#include "analysis/compare/cell.h"
#include "measure/record.h"

namespace paceline::analysis {

/// Cells are in the order of their first records.
[[nodiscard]] std::vector<Cell> make_cells(std::span<const measure::Record> records);

}  // namespace paceline::analysis
