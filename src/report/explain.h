#pragma once

/// How the answers follow from the records: each step with its formula and its numbers filled in.

#include <span>

#include "measure/record.h"
#include "report/document.h"

namespace paceline::report {

/// A section a step, for each model and data set: the cells that the operating point was chosen from and
/// those that were left out, batch, workers, limit, network, accuracy. What was not measured is said.
///
/// Precondition: records is not empty
[[nodiscard]] Document explain(std::span<const measure::Record> records);

}  // namespace paceline::report
