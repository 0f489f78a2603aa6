#pragma once

/// What a shell needs to complete a line of paceline: commands, their options, and words that an option
/// takes. Made from the tables of commands and options; pure functions.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options.h"

namespace paceline::cli {

/// A command and what it is for, in a few words.
struct CommandWords {
  std::string_view name;
  Command command;
  std::string_view summary;
};

/// The shells that there is a script for.
[[nodiscard]] const std::vector<std::string>& completed_shells();

/// The script of `shell`, one of completed_shells(). Behind launch's and sbatch's "--" it completes the
/// command that they start; where an option takes anything, names of files.
[[nodiscard]] std::string completion_script(const std::string& shell, std::span<const CommandWords> commands);

/// The words that an option takes, "auto", "pmix", "none"; empty where it takes more than a few words.
[[nodiscard]] std::vector<std::string> words_of_value(const Option& option);

}  // namespace paceline::cli
