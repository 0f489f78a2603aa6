#pragma once

/// Explains how the answers follow from the records: each step with its formula and its numbers.

#include <span>

#include "measure/record.h"
#include "report/document.h"

namespace paceline::report {

/// A section per step, for each model and data set: the cells among which the operating point was chosen and
/// those left out, batch, workers, limit, network, accuracy. It says what was not measured.
///
/// Requires  records is not empty
[[nodiscard]] Document explain(std::span<const measure::Record> records);

}  // namespace paceline::report
