#pragma once

/// Records joined into cells: one set-up, all its repeats.
///
/// Records belong to the same cell when nothing of their set-ups (setup.h) differs: how the workers are
/// joined and placed, model, data, machine, settings, circumstances. Whatever differs makes another cell, so
/// repeats can never hide a difference. Every record but those of collectives is in exactly one cell: as a
/// repeat, as the one that says why nothing was measured, or as a lost one. A record that contradicts itself
/// is lost, or a cell that is "left out": none of its figures is used. What failed stands beside the repeats
/// of its own version, or is a cell where there are none.
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
