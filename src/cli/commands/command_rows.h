#pragma once

/// The table of commands, from which the overview, completions and the manual page are made.

#include <span>
#include <string_view>

#include "cli/options/settings.h"

namespace paceline::cli {

struct CommandRow {
  std::string_view name;
  Command command;
  std::string_view summary;
  int (*run)(const Settings&);
};

/// Every command, in the order of the overview.
[[nodiscard]] std::span<const CommandRow> command_rows();

}  // namespace paceline::cli
