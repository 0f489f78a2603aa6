#pragma once

/// Makes shell completion scripts for paceline: commands, their options, and words that an option accepts.
/// Made from the tables of commands and options; pure functions.

#include <array>
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

/// The shells with a completion script.
inline constexpr std::array<std::string_view, 3> kShells{"bash", "zsh", "fish"};

/// The script for `shell`, one of kShells. After "--" of launch and sbatch it completes the
/// command that they start. For options that accept anything it completes file names.
[[nodiscard]] std::string completion_script(const std::string& shell, std::span<const CommandRow> commands);

/// The words that an option accepts, "auto", "pmix", "none"; empty if it accepts more than a few words.
[[nodiscard]] std::vector<std::string> words_of_value(const Option& option);

/// The page in roff with man macros. `version`: "0.1.0 (5893440)".
[[nodiscard]] std::string manual_page(std::span<const CommandRow> commands, const std::string& version);

}  // namespace paceline::cli
