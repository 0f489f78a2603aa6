#pragma once

/// Makes the manual page paceline(1) from the tables of commands and options. A pure function.

#include <span>
#include <string>

#include "cli/options/completion.h"

namespace paceline::cli {

/// The page in roff with man macros. `version`: "0.1.0 (5893440)".
[[nodiscard]] std::string manual_page(std::span<const CommandWords> commands, const std::string& version);

}  // namespace paceline::cli
