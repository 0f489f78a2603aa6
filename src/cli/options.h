#pragma once

/// The one table of options. The command line, recipes, `--help` and docs/switches.md are all made from it:
/// an option is one row, here and nowhere else.

#include <string>
#include <string_view>
#include <vector>

#include "cli/settings.h"

namespace paceline::cli {

struct Option {
  std::string name;   ///< "global-batch": --global-batch on the command line, global-batch = ... in a recipe
  std::string value;  ///< what is written for its value in help, "B"; empty: a switch, --name or --no-name
  std::string group;  ///< heading in help
  std::string help;   ///< what it does, and its consequence
  unsigned commands;  ///< Command bits that take it
  /// Reads `text` into the settings. Errors: Error(usage), the end of a sentence that begins with the name
  /// (values.h)
  void (*set)(Settings& settings, std::string_view text);
  /// The present value as text, "" for none: what help shows as default.
  std::string (*get)(const Settings& settings);
  std::string rival = {};  ///< cannot be given together with this one; a later layer's replaces an earlier's
  bool in_recipes = true;  ///< off: only on the command line
};

/// Every option, grouped, in the order in which values are set: what others derive from stands first (the
/// optimizer sets its own defaults for lr and momentum, so it stands before them).
[[nodiscard]] const std::vector<Option>& options();

/// The row of `name` for a command, or nullptr.
[[nodiscard]] const Option* find_option(std::string_view name, Command command);

/// Why `name` is no option of this command, and what was meant: the end of a sentence "--batch ...".
[[nodiscard]] std::string why_unknown(std::string_view name, Command command, std::string_view prefix = "--");

/// The name of a command as typed: "train".
[[nodiscard]] std::string command_name(Command command);

/// The options of each command with their defaults, as a Markdown table: the body of docs/switches.md.
[[nodiscard]] std::string options_markdown();

}  // namespace paceline::cli
