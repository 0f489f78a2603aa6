#pragma once

/// From what was typed to Settings: defaults, then the recipe, then the command line; a later one wins.

#include <string>
#include <vector>

#include "cli/layers.h"

namespace paceline::cli {

struct Parsed {
  Settings settings;
  std::string help;  ///< not empty: --help was asked for; the rest means nothing
};

/// Reads the words after the command's name. Errors: Error(usage).
[[nodiscard]] Parsed parse(Command command, const std::vector<std::string>& words);

/// How a command is called, in one line or a line for each form.
[[nodiscard]] std::string usage_line(Command command);

/// What `paceline COMMAND --help` prints.
[[nodiscard]] std::string help_text(Command command);

}  // namespace paceline::cli
