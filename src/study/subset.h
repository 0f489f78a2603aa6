#pragma once

/// Runs some of a list of cells. Who is told of a cell, this process's screen and other processes, is told
/// its place in the whole list, on which all of them agree.

#include <cstddef>
#include <vector>

#include "measure/record.h"
#include "study/study.h"

namespace paceline::study {

/// The cells at `places`, in that order.
[[nodiscard]] std::vector<PlannedCell> subset(const std::vector<PlannedCell>& cells,
                                              const std::vector<std::size_t>& places);

/// run_cells() of the cells at `places`.
[[nodiscard]] std::vector<measure::Record> run_subset(const std::vector<PlannedCell>& cells,
                                                      const std::vector<std::size_t>& places,
                                                      const Runner& runner);

/// Whether a record says that the study was stopped.
[[nodiscard]] bool was_stopped(const std::vector<measure::Record>& records);

}  // namespace paceline::study
