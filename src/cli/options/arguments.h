#pragma once

/// Parses the command line into Settings: defaults, then the recipe, then the command line; later layers win.

#include <string>
#include <vector>

#include "cli/options/layers.h"

namespace paceline::cli {

struct Parsed {
  Settings settings;
  std::string help;  ///< if not empty, --help was given and this is its text; `settings` is then meaningless
};

/// Parses the words after the command's name.
///
/// Errors   Error(usage)
[[nodiscard]] Parsed parse(Command command, const std::vector<std::string>& words);

/// The usage of a command, a line for each form.
[[nodiscard]] std::string usage_line(Command command);

/// The text of `paceline COMMAND --help`.
[[nodiscard]] std::string help_text(Command command);

}  // namespace paceline::cli
