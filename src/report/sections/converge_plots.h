#pragma once

#include <vector>

#include "analysis/trainings/converge.h"
#include "report/document.h"

namespace paceline::report {

/// Plots the variants' test accuracy over epochs, over updates and over seconds of training, as means over
/// seeds. The last plot has only variants whose seconds can be compared with the first's. None if nothing was
/// trained.
[[nodiscard]] std::vector<Plot> converge_plots(const analysis::Convergence& result);

}  // namespace paceline::report
