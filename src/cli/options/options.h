#pragma once

/// How each option of measure/setting.h is written, read and explained. The command line, recipes, `--help`
/// and docs/switches.md are made from these rows.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/options/settings.h"
#include "measure/setting.h"

namespace paceline::cli {

/// A help text, or a function that makes one from other tables.
class Help {
 public:
  constexpr Help(const char* text) : text_(text) {}
  constexpr Help(std::string (*write)()) : write_(write) {}
  [[nodiscard]] std::string text() const { return write_ != nullptr ? write_() : text_; }

 private:
  const char* text_ = "";
  std::string (*write_)() = nullptr;
};

struct Option {
  measure::Setting setting;  ///< its meaning; its key is the option's name
  std::string_view
      value;  ///< how its value is written in help texts, "B"; empty: a switch, --name or --no-name
  std::string_view group;  ///< heading in help
  Help help;               ///< what it does, and its consequences
  unsigned commands;       ///< Command bits that accept it
  /// Parses `text` into the settings.
  ///
  /// Errors   Error(usage): the end of a sentence that begins with the option's name (values.h)
  void (*set)(Settings& settings, std::string_view text);
  /// The current value as text, "" for none: the default that help shows.
  std::string (*get)(const Settings& settings);
  /// An option that cannot be given together with this one; a later layer's overrides an earlier's.
  std::optional<measure::Setting> rival = {};
  bool in_recipes = true;  ///< false: only on the command line
  /// What must be chosen for the option to have an effect, "--schedule step". If it is missing, the user is
  /// told, and records lack the option (train/given/recorded_settings.cc).
  std::string_view needs = {};
  /// May be given several times; the reader gets all values, joined by "\n".
  bool is_list = false;

  /// "global-batch": --global-batch on the command line, global-batch = ... in a recipe
  [[nodiscard]] constexpr std::string_view name() const { return setting.key(); }
};

/// All options, grouped, in the order in which they are set. An option from which others derive defaults
/// comes first (the optimizer sets defaults for lr and momentum).
[[nodiscard]] const std::vector<Option>& options();

/// The row of `name` for a command, or nullptr.
[[nodiscard]] const Option* find_option(std::string_view name, Command command);

/// Why `name` is no option of this command, and what was probably meant: the end of a sentence "--batch ...".
[[nodiscard]] std::string why_unknown(std::string_view name, Command command, std::string_view prefix = "--");

/// The name of a command as typed: "train".
[[nodiscard]] std::string command_name(Command command);

/// "all that train, evaluate": the commands of a row, for display.
[[nodiscard]] std::string commands_that_take(const Option& option);

/// The default, "`128`; study: `64`": that of the first command that accepts the option, then of commands
/// with another one. "" for none.
[[nodiscard]] std::string defaults_of(const Option& option);

/// The options of each command with their defaults, as a Markdown table: the body of docs/switches.md.
[[nodiscard]] std::string options_markdown();

}  // namespace paceline::cli
