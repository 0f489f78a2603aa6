#pragma once

/// Makes shell completion scripts for paceline: commands, their options, and words that an option accepts.
/// Made from the tables of commands and options; pure functions.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/options.h"

namespace paceline::cli {

/// A command and its short description.
struct CommandWords {
  std::string_view name;
  Command command;
  std::string_view summary;
};

/// The shells with a completion script.
[[nodiscard]] const std::vector<std::string>& completed_shells();

/// The script for `shell`, one of completed_shells(). After "--" of launch and sbatch it completes the
/// command that they start. For options that accept anything it completes file names.
[[nodiscard]] std::string completion_script(const std::string& shell, std::span<const CommandWords> commands);

/// The words that an option accepts, "auto", "pmix", "none"; empty if it accepts more than a few words.
[[nodiscard]] std::vector<std::string> words_of_value(const Option& option);

/// The page in roff with man macros. `version`: "0.1.0 (5893440)".
[[nodiscard]] std::string manual_page(std::span<const CommandWords> commands, const std::string& version);

}  // namespace paceline::cli
