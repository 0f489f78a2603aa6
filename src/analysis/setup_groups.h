#pragma once

/// Cells sorted into groups that a table, a line or an answer may speak of: of one model and data, and of one
/// set-up.

#include <span>
#include <string>
#include <vector>

#include "analysis/cell.h"

namespace paceline::analysis {

struct CellGroup {
  std::vector<const Cell*> cells;  ///< in the order given
  std::string name;                ///< what tells it from the other groups; empty where it is the only one
};

/// By what is trained: cells whose models or data (entries of kind `subject`) differ are never in one group.
/// Names: "resnet8-cifar", "mnist-cnn on mnist". A cell that was not run is with those of its model and data,
/// as far as it knows them.
[[nodiscard]] std::vector<CellGroup> by_subject(std::span<const Cell> cells);

/// What two measured cells of a group must not share.
enum class Place {
  workers,  ///< one set-up for each number of workers: scaling
  batch,    ///< one for each batch, and one way of joining the workers for all: a sweep
};

/// Splits cells so that the times of two measured ones at one place of a group may be called the same but for
/// circumstances(): by the first entry of the set-up in which two at one place differ, and each part again.
/// Entries that no ratio of times is refused for, such as a learning rate, split nothing. Names: "threads of
/// one process", "processes on 2 nodes", "loader-threads 4".
///
/// Place::workers: a worker alone is in every part of its own settings, since it is the baseline of all ways
/// of joining workers; a part that has none gets those of the whole, if they are all of one set-up. So cells
/// can be in several groups; each is in one at least. Cells that were not measured are in one group, that of
/// their texts where they know them.
[[nodiscard]] std::vector<CellGroup> by_setup(const std::vector<const Cell*>& cells, Place place);

/// Whether two measured cells of as many workers at one batch are joined otherwise.
[[nodiscard]] bool are_joined_otherwise(const std::vector<const Cell*>& cells);

/// How the cells of a group are joined, whatever their numbers of workers: "threads of one process",
/// "processes over shared memory" (2 and 4 of them), "processes on 2 nodes". Empty where none is joined.
[[nodiscard]] std::string joined_as(const std::vector<const Cell*>& cells);

}  // namespace paceline::analysis
