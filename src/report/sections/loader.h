#pragma once

/// The loaders of all measured cells: what they gave and could have given.

#include <optional>

#include "report/conclusions.h"
#include "report/document.h"

namespace paceline::report {

/// Whether steps wait for data, where and how long, and what would help; nothing where none does.
[[nodiscard]] std::optional<Paragraph> loader_warning(const Conclusions& conclusions);

/// Nothing where no record knows enough of its loaders.
[[nodiscard]] std::optional<Table> loader_table(const Conclusions& conclusions);

}  // namespace paceline::report
