#pragma once

/// Makes labels that distinguish the cells of one table or plot.

#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "analysis/compare/cell.h"

namespace paceline::analysis {

/// What distinguishes each of the cells from the others besides sizes and the length of the window: "lr 0.2",
/// "2 processes on 2 nodes", "version ..."; for a cell that lacks a setting which others have, "no
/// emulate-link". How workers are joined, and their threads, are compared only among cells with equally many
/// workers, since both may change with the workers. Empty texts if all are alike.
///
/// `shown`: entries of the set-up that columns beside the text show already.
[[nodiscard]] std::vector<std::string> differences(const std::vector<const Cell*>& cells,
                                                   const std::set<std::string>& shown = {});

/// The same, by circumstances() only.
[[nodiscard]] std::vector<std::string> different_circumstances(const std::vector<const Cell*>& cells);

/// Entries of the set-up, without settings, that differ among the measured cells. Entries of kind `joined`
/// and `cores` are compared among cells with equally many workers, without single workers.
[[nodiscard]] std::set<std::string> different_entries(const std::vector<const Cell*>& cells);

/// Names for the lines of a plot, a text per cell; `places` are the cells' positions on one line. If two
/// cells would share a position, measured by two versions or with two rates, each is named by what
/// distinguishes it, if possible by its circumstances. If none do, all texts are empty.
[[nodiscard]] std::vector<std::string> cell_labels(
    const std::vector<const Cell*>& cells, const std::vector<std::pair<std::int64_t, std::int64_t>>& places);

}  // namespace paceline::analysis
