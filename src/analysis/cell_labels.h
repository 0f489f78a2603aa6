#pragma once

/// How cells are told apart where they stand beside each other in one table or plot.

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analysis/cell.h"

namespace paceline::analysis {

/// What tells each of the cells from the others beyond its sizes and the length of its window: "lr 0.2",
/// "2 processes on 2 nodes", "version ..."; of a cell that only lacks settings which others have, "no
/// emulate-link". How workers are joined and how many threads they have is compared among cells of as many
/// workers: both may well change with the workers. Empty texts where they are all alike.
///
/// `shown`: entries of the set-up that columns beside the text show already.
[[nodiscard]] std::vector<std::string> differences(const std::vector<const Cell*>& cells,
                                                   const std::set<std::string>& shown = {});

/// The same by circumstances() alone.
[[nodiscard]] std::vector<std::string> different_circumstances(const std::vector<const Cell*>& cells);

/// One text a cell: the first entries of their set-ups that tell them apart, and no more of them. Alike only
/// where the whole set-ups are.
[[nodiscard]] std::vector<std::string> first_differences(const std::vector<const Cell*>& cells);

/// Entries of the set-up, settings left out, that differ among the measured cells; those of kind `joined` and
/// `cores` among cells of as many workers, a worker alone left out.
[[nodiscard]] std::set<std::string> different_entries(const std::vector<const Cell*>& cells);

/// What to call the lines of a plot by, one text a cell: `places` are where the cells would stand on one
/// line. Where two would stand above each other, measured by two versions or with two rates, each is called
/// by what tells it from the others, its circumstances if they do; where none would, all texts are empty.
[[nodiscard]] std::vector<std::string> cell_labels(
    const std::vector<const Cell*>& cells, const std::vector<std::pair<std::int64_t, std::int64_t>>& places);

}  // namespace paceline::analysis
