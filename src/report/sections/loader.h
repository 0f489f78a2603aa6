#pragma once

/// Makes the table of the loaders of all measured cells: what they delivered and could have delivered.

#include <optional>

#include "report/conclusions.h"
#include "report/document.h"

namespace paceline::report {

/// A sentence on where and how long steps wait for data, and what would help; nothing if none waits.
[[nodiscard]] std::optional<Paragraph> loader_warning(const Conclusions& conclusions);

/// Nothing if no record knows enough about its loaders.
[[nodiscard]] std::optional<Table> loader_table(const Conclusions& conclusions);

}  // namespace paceline::report
