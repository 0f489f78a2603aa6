#pragma once

/// Makes shell completion scripts for paceline: commands, their options, and words that an option accepts.
/// Made from the tables of commands and options; pure functions.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/options.h"

namespace paceline::cli {

/// A row of the table of commands, from which the overview, completions and the manual page are made.
struct CommandRow {
  std::string_view name;
  Command command;
  std::string_view summary;
  int (*run)(const Settings&);
};

/// The words of which a command takes one first, "list", "show", "rm"; empty if it takes files or nothing.
[[nodiscard]] std::vector<std::string> actions_of(Command command);

/// The script for `shell`, one of actions_of(kCompletion). After "--" of launch and sbatch it completes the
/// command that they start. For options that accept anything it completes file names.
[[nodiscard]] std::string completion_script(const std::string& shell, std::span<const CommandRow> commands);

/// The words that an option accepts, "auto", "pmix", "none"; empty if it accepts more than a few words.
[[nodiscard]] std::vector<std::string> words_of_value(const Option& option);

/// The page in roff with man macros. `version`: "0.1.0 (5893440)".
[[nodiscard]] std::string manual_page(std::span<const CommandRow> commands, const std::string& version);

}  // namespace paceline::cli
