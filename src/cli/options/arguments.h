#pragma once

/// Parses the command line into Settings: defaults, then the recipe, then the command line; later layers win.

#include <filesystem>
#include <string>
#include <vector>

#include "cli/options/options.h"
#include "cli/options/recipe.h"

namespace paceline::cli {

// Finds the options with which the model of a checkpoint was trained, as far as its evaluation depends on
// them, so that users need not type them again.

/// The options of `evaluate` from the record beside the checkpoint (data, model, precision, device, batch,
/// validation split ...); without a record those in the checkpoint itself: model and precision.
///
/// Errors   Error(data): there is no such checkpoint, its header is broken, or the record cannot be read
[[nodiscard]] std::vector<Assignment> options_of_checkpoint(const std::filesystem::path& checkpoint);

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
/// With `is_short` only what most people need first, each option in a few words.
[[nodiscard]] std::string help_text(Command command, bool is_short = false);

}  // namespace paceline::cli
