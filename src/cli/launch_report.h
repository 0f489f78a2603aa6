#pragma once

/// What doctor says about processes: the launcher that started this one and what it was given, or what would
/// start several.

#include <iosfwd>
#include <string>
#include <vector>

#include "cli/session.h"
#include "comm/launch.h"

namespace paceline::cli {

/// What is odd about the processes of a launch, a sentence each, with what mends it. Pure function.
[[nodiscard]] std::vector<std::string> odd_about(const std::vector<ProcessInfo>& members);

/// What is odd about a process that no launcher started, "" for nothing. Pure function.
[[nodiscard]] std::string odd_about_one_alone(const comm::EnvironmentLookup& environment);

/// The processes of a launch, a line each: rank, host, local rank, cores, GPUs.
void show_members(const std::vector<ProcessInfo>& members, std::ostream& out);

/// The table of processes, the launcher's variables and what is odd; without a session what is there to start
/// several.
void show_launch(const Session* session, std::ostream& out);

}  // namespace paceline::cli
