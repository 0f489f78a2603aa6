#pragma once

/// Records joined into cells: one configuration, all its repeats.
///
/// Records belong to the same cell when all their settings agree apart from the seed and the length of the
/// measured window, of the same model (parameters and FLOPs), on the same kind of machine, in the same build
/// and circumstances(), resumed with the same changes if at all. Whatever else differs makes another cell, so
/// repeats can never hide a difference. A record that contradicts itself is a repeat that was lost, or a cell
/// that is "left out": none of its figures is used. What failed stands beside the repeats of its own version,
/// or is a cell where there are none.
///
/// Lifetime  cells look into the records that they were made from, which must outlive them

#include <span>
#include <vector>

#include "analysis/cell.h"
#include "measure/record.h"

namespace paceline::analysis {

/// In the order in which each cell's first record comes.
[[nodiscard]] std::vector<Cell> make_cells(std::span<const measure::Record> records);

}  // namespace paceline::analysis
