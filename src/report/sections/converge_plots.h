#pragma once

#include <vector>

#include "analysis/converge.h"
#include "report/document.h"

namespace paceline::report {

/// The variants' test accuracy over epochs, over updates and over the seconds of their training: means over
/// seeds. The last of those alone whose seconds can be compared with the first's. None where nothing was
/// trained.
[[nodiscard]] std::vector<Plot> converge_plots(const analysis::Convergence& result);

}  // namespace paceline::report
