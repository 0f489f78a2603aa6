#pragma once

/// Names the other programs that used the processor during a measurement.

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "measure/record.h"

namespace paceline::measure {

/// Processor seconds of all other processes that this one can see; in a container it does not see those
/// outside.
struct ProgramTimes {
  struct Program {
    std::string name;  ///< of the process, at most 15 letters
    double processor_s = 0;
  };
  /// By process id and start time, since the system reuses ids.
  std::map<std::pair<int, std::int64_t>, Program> programs;
};

/// Reads /proc/PID/stat, in ticks of 10 ms. `left_out`: processes of this name do not count as others (those
/// of the same run); empty: all count.
///
/// Cost     10 us per process
[[nodiscard]] ProgramTimes program_times(const std::string& left_out = "");

/// The name of this process as program_times() would report it.
[[nodiscard]] std::string own_program_name();

/// The programs that kept the most cores busy between two moments `wall_s` apart: at most `most`, each with
/// at least 0.02 cores, the busiest first. Processes of one name count together. Programs that ended
/// meanwhile are not seen. Empty for less than a second, for which ticks are too coarse.
[[nodiscard]] std::vector<OtherProgramRecord> busiest_programs(const ProgramTimes& begin,
                                                               const ProgramTimes& end, double wall_s,
                                                               std::size_t most = 3);

}  // namespace paceline::measure
