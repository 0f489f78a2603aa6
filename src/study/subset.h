#pragma once

/// Runs some of a list of cells. The callbacks of the Runner, which write to the screen and tell other
/// processes which cell is next, get the index of a cell in the whole list: it is the same in all processes.

#include <cstddef>
#include <vector>

#include "measure/record.h"
#include "study/study.h"

namespace paceline::study {

/// The cells at the indices `places`, in that order.
[[nodiscard]] std::vector<PlannedCell> subset(const std::vector<PlannedCell>& cells,
                                              const std::vector<std::size_t>& places);

/// run_cells() for the cells at `places`; the records are in that order.
[[nodiscard]] std::vector<measure::Record> run_subset(const std::vector<PlannedCell>& cells,
                                                      const std::vector<std::size_t>& places,
                                                      const Runner& runner);

/// Whether at least one record says that the study was stopped.
[[nodiscard]] bool was_stopped(const std::vector<measure::Record>& records);

}  // namespace paceline::study
