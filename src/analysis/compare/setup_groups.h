#pragma once

/// Sorts cells into groups with one model, data and set-up, for tables, plots and answers.

#include <span>
#include <string>
#include <vector>

#include "analysis/compare/cell.h"

namespace paceline::analysis {

struct CellGroup {
  std::vector<const Cell*> cells;  ///< in the given order
  std::string name;                ///< its difference from the other groups; empty if it is the only one
};

/// Groups by what is trained: cells with different models or data (entries of kind `subject`) are never in
/// one group. Names: "resnet8-cifar", "mnist-cnn on mnist". A cell that was not run is grouped by the model
/// and data that it knows.
[[nodiscard]] std::vector<CellGroup> by_subject(std::span<const Cell> cells);

/// What must be unique among the measured cells of a group.
enum class Place {
  workers,  ///< one set-up for each number of workers: scaling
  batch,    ///< one for each batch, and one way of joining the workers for all: a sweep
};

/// Splits cells until no group has two measured cells at one place whose set-ups differ in anything that
/// affects times, except circumstances(): by the first entry of the set-up in which two such cells differ,
/// and so on for each part. Entries that do not forbid a ratio of times, such as a learning rate, split
/// nothing. Names: "threads of one process", "processes on 2 nodes", "loader-threads 4".
///
/// Place::workers: a single worker is in every part with its settings, since it is the baseline of all ways
/// of joining workers. A part without one gets those of the whole, if they all have one set-up. So cells can
/// be in several groups, but each is in at least one. Cells that were not measured are in one group, by the
/// entries that they know.
[[nodiscard]] std::vector<CellGroup> by_setup(const std::vector<const Cell*>& cells, Place place);

/// Whether two measured cells with equally many workers at one batch are joined differently.
[[nodiscard]] bool are_joined_otherwise(const std::vector<const Cell*>& cells);

/// How the cells of a group are joined, whatever their numbers of workers: "threads of one process",
/// "processes over shared memory" (2 and 4 of them), "processes on 2 nodes". Empty if all have a single
/// worker.
[[nodiscard]] std::string joined_as(const std::vector<const Cell*>& cells);

}  // namespace paceline::analysis
