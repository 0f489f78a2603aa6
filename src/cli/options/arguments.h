#pragma once

/// Parses the command line into Settings: defaults, then the recipe, then the command line; later layers win.

#include <string>
#include <vector>

#include "cli/options/options.h"

namespace paceline::cli {

struct Parsed {
  Settings settings;
  std::string help;  ///< if not empty, --help was given and this is its text; `settings` is then meaningless
};

/// Parses the words after the command's name.
///
/// Errors   Error(usage)
[[nodiscard]] Parsed parse(Command command, const std::vector<std::string>& words);

/// The text of `paceline COMMAND --help`.
/// With `is_short` only what most people need first, each option in a few words.
[[nodiscard]] std::string help_text(Command command, bool is_short = false);

}  // namespace paceline::cli
