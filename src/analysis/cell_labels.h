#pragma once

/// How cells are told apart where they stand beside each other in one table or plot.

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "analysis/cell.h"

namespace paceline::analysis {

/// What tells each of the cells from the others beyond its sizes and the length of its window: "lr 0.2",
/// "version ..."; of a cell that only lacks settings which others have, "no emulate-link". Empty texts where
/// they are all alike.
[[nodiscard]] std::vector<std::string> differences(const std::vector<const Cell*>& cells);

/// The same by circumstances() alone.
[[nodiscard]] std::vector<std::string> different_circumstances(const std::vector<const Cell*>& cells);

/// What to call the lines of a plot by, one text a cell: `places` are where the cells would stand on one
/// line. Where two would stand above each other, measured by two versions or with two rates, each is called
/// by what tells it from the others, its circumstances if they do; where none would, all texts are empty.
[[nodiscard]] std::vector<std::string> cell_labels(
    const std::vector<const Cell*>& cells, const std::vector<std::pair<std::int64_t, std::int64_t>>& places);

}  // namespace paceline::analysis
