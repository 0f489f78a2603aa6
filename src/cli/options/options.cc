#include "cli/options/options.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "base/nearest.h"
#include "cli/options/other_words.h"

namespace paceline::cli {
namespace {

constexpr std::array kCommands{
    std::pair{kTrain, "train"},       std::pair{kSweep, "sweep"},     std::pair{kScale, "scale"},
    std::pair{kConverge, "converge"}, std::pair{kStudy, "study"},     std::pair{kReport, "report"},
    std::pair{kDoctor, "doctor"},     std::pair{kData, "data"},       std::pair{kComm, "comm"},
    std::pair{kLaunch, "launch"},     std::pair{kSbatch, "sbatch"},   std::pair{kSearch, "search"},
    std::pair{kEvaluate, "evaluate"}, std::pair{kExplain, "explain"}, std::pair{kRunList, "runs"},
    std::pair{kServe, "serve"},       std::pair{kCompare, "compare"}, std::pair{kVerify, "verify"},
    std::pair{kCheck, "check"},       std::pair{kImport, "import"},   std::pair{kCompletion, "completion"},
    std::pair{kManual, "man"},        std::pair{kInit, "init"},
};
static_assert(kCommands.size() == kNumberOfCommands,
              "every command has its name here and its row in command_rows.cc");

/// "scale and study": the commands of a row, for messages.
std::string commands_of(unsigned commands) {
  std::string text;
  for (const auto& [bit, name] : kCommands)
    if (commands & bit) text += (text.empty() ? "" : ", ") + std::string(name);
  return text;
}

}  // namespace

std::string commands_that_take(const Option& option) {
  const auto commands = option.commands;
  if ((commands & kRuns) != kRuns) return commands_of(commands);
  const auto others = commands_of(commands & ~kRuns);
  return "all that train" + (others.empty() ? "" : ", " + others);
}

const Option* find_option(std::string_view name, Command command) {
  for (const auto& option : options())
    if (option.name() == name && (option.commands & command)) return &option;
  return nullptr;
}

std::string command_name(Command command) { return commands_of(command); }

std::string why_unknown(std::string_view name, Command command, std::string_view prefix) {
  if (name == "batch" || name == "batch-size") {
    if (find_option("batches", command) != nullptr)
      return fmt::format("is not an option of {}; {}batches LIST says which sizes are compared",
                         command_name(command), prefix);
    return fmt::format(
        "is not an option, because with several workers it could mean two things: {0}local-batch b is what "
        "one worker takes a step, {0}global-batch B what all take together (B = workers x b)",
        prefix);
  }
  // Checked before other commands' options: --gpus given to train means the workers, not sbatch's request.
  if (const auto hint = hint_for_other_word(name, prefix)) return *hint;
  for (const auto& option : options())
    if (option.name() == name)
      return fmt::format("is not an option of {}; it belongs to {}", command_name(command),
                         commands_of(option.commands));
  std::vector<std::string> known;
  for (const auto& option : options())
    if (option.commands & command) known.emplace_back(option.name());
  if (const auto near = base::nearest_name(name, known))
    return fmt::format("is not an option of {}; did you mean {}{}?", command_name(command), prefix, *near);
  return fmt::format("is not an option of {0}; 'paceline {0} --help' lists them", command_name(command));
}

std::string defaults_of(const Option& option) {
  std::string first, text;
  bool begun = false;
  for (const auto& [bit, name] : kCommands) {
    if (!(option.commands & bit)) continue;
    const auto present = option.get(defaults(bit));
    const auto written = present.empty() ? std::string("none") : fmt::format("`{}`", present);
    if (!begun) {
      first = present;
      text = present.empty() ? "" : written;
      begun = true;
    } else if (present != first) {
      text += fmt::format("{}{}: {}", text.empty() ? "" : "; ", name, written);
    }
  }
  return text;
}

std::string options_markdown() {
  std::string text;
  std::string group;
  for (const auto& option : options()) {
    if (option.group != group) {
      group = option.group;
      text += fmt::format("\n### {}\n\n| option | default | what it does | commands |\n|---|---|---|---|\n",
                          group);
    }
    const auto written = option.value.empty() ? fmt::format("`--{0}`, `--no-{0}`", option.name())
                                              : fmt::format("`--{} {}`", option.name(), option.value);
    std::string cell;
    for (const char c : written) cell += c == '|' ? std::string("\\|") : std::string(1, c);
    text += fmt::format("| {} | {} | {} | {} |\n", cell, defaults_of(option), option.help.text(),
                        commands_that_take(option));
  }
  return text;
}

}  // namespace paceline::cli
