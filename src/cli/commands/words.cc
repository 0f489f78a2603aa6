/// completion and man: what the program writes about itself, for shells and for man.

#include <cstdio>
#include <vector>

#include "cli/commands/command_rows.h"
#include "cli/commands/commands.h"
#include "cli/options/completion.h"
#include "cli/options/manual.h"
#include "measure/version.h"

namespace paceline::cli {
namespace {

std::vector<CommandWords> words_of_commands() {
  std::vector<CommandWords> all;
  for (const auto& row : command_rows()) all.push_back({row.name, row.command, row.summary});
  return all;
}

}  // namespace

int completion_command(const Settings& settings) {
  std::fputs(completion_script(settings.shell, words_of_commands()).c_str(), stdout);
  return 0;
}

int manual_command(const Settings& /*settings*/) {
  std::fputs(manual_page(words_of_commands(), measure::version()).c_str(), stdout);
  return 0;
}

}  // namespace paceline::cli
