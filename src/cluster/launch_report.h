#pragma once

/// Writes the doctor's report on processes: the launcher of this process and its variables, or what could
/// start several processes.

#include <iosfwd>
#include <string>
#include <vector>

#include "cluster/session.h"
#include "comm/launch.h"

namespace paceline::cluster {

/// Unusual properties of a launch's processes, a sentence each, with the remedy. A pure function.
[[nodiscard]] std::vector<std::string> odd_about(const std::vector<ProcessInfo>& members);

/// How a process without others was started: by itself, by a launcher, or with half of a launcher's
/// variables, with which a training would be refused. A pure function.
///
/// Errors   Error(usage) of comm::read_launch()
[[nodiscard]] std::string how_alone(const comm::EnvironmentLookup& environment);

/// Unusual properties of a process without a launcher; "" if there is nothing unusual. A pure function.
[[nodiscard]] std::string odd_about_one_alone(const comm::EnvironmentLookup& environment);

/// The processes of a launch, a line each: rank, host, local rank, cores, GPUs.
void show_members(const std::vector<ProcessInfo>& members, std::ostream& out);

/// Prints the table of processes, the launcher's variables and unusual properties; without a session, what is
/// available to start several processes.
void show_launch(const Session* session, std::ostream& out);

}  // namespace paceline::cluster
