#pragma once

/// How each option of measure/setting.h is written, read and explained. The command line, recipes, `--help`
/// and docs/switches.md are all made from these rows.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/settings.h"
#include "measure/setting.h"

namespace paceline::cli {

/// A text of help, or the function that writes one which is made of other tables.
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
  measure::Setting setting;  ///< what it means; its key is the option's name
  std::string_view
      value;  ///< what is written for its value in help, "B"; empty: a switch, --name or --no-name
  std::string_view group;  ///< heading in help
  Help help;               ///< what it does, and its consequence
  unsigned commands;       ///< Command bits that take it
  /// Reads `text` into the settings. Errors: Error(usage), the end of a sentence that begins with the name
  /// (values.h)
  void (*set)(Settings& settings, std::string_view text);
  /// The present value as text, "" for none: what help shows as default.
  std::string (*get)(const Settings& settings);
  /// Cannot be given together with this one; a later layer's replaces an earlier's.
  std::optional<measure::Setting> rival = {};
  bool in_recipes = true;  ///< off: only on the command line
  /// What must be chosen for the option to be read, "--schedule step": given without it, the user is told.
  /// Records then lack it (train/recorded_settings.cc).
  std::string_view needs = {};
  /// Given several times, all are taken: the reader gets them with "\n" between them.
  bool is_list = false;

  /// "global-batch": --global-batch on the command line, global-batch = ... in a recipe
  [[nodiscard]] constexpr std::string_view name() const { return setting.key(); }
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

/// "all that train, evaluate": the commands of a row, for people.
[[nodiscard]] std::string commands_that_take(const Option& option);

/// What it is where it is not given, "`128`; study: `64`": of the commands that take it, the first's, and
/// whose is another. "" for none.
[[nodiscard]] std::string defaults_of(const Option& option);

/// The options of each command with their defaults, as a Markdown table: the body of docs/switches.md.
[[nodiscard]] std::string options_markdown();

}  // namespace paceline::cli
