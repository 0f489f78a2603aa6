#pragma once

/// Runs some of a list of cells. Callbacks (for the screen and other processes) get a cell's index in the
/// whole list, on which all processes agree.

#include <cstddef>
#include <vector>

#include "measure/record.h"
#include "study/study.h"

namespace paceline::study {

/// The cells at the indices `places`, in that order.
[[nodiscard]] std::vector<PlannedCell> subset(const std::vector<PlannedCell>& cells,
                                              const std::vector<std::size_t>& places);

/// run_cells() for the cells at `places`.
[[nodiscard]] std::vector<measure::Record> run_subset(const std::vector<PlannedCell>& cells,
                                                      const std::vector<std::size_t>& places,
                                                      const Runner& runner);

/// Whether one of the records says that the study was stopped.
[[nodiscard]] bool was_stopped(const std::vector<measure::Record>& records);

}  // namespace paceline::study
