#pragma once

/// Which other programs used the processors while something was measured, by name.

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "measure/record.h"

namespace paceline::measure {

/// Processor seconds of the processes that this one can see, itself left out; in a container those outside
/// are not seen.
struct ProgramTimes {
  struct Program {
    std::string name;  ///< of the process, 15 letters at most
    double processor_s = 0;
  };
  /// By process id and start time: an id that was given again is another process.
  std::map<std::pair<int, std::int64_t>, Program> programs;
};

/// Source   /proc/PID/stat, in ticks of 10 ms. `left_out`: processes of this name are not others (those of
///          one run); empty: none is left out. Cost    10 us a process
[[nodiscard]] ProgramTimes program_times(const std::string& left_out = "");

/// The name of this process, as program_times() would give it.
[[nodiscard]] std::string own_program_name();

/// The programs that kept the most cores busy between two moments `wall_s` apart: at most `most`, each with
/// at least 0.02 cores, the busiest first; processes of one name count together. Those that ended meanwhile
/// are not seen. Empty for less than a second: ticks are too coarse then.
[[nodiscard]] std::vector<OtherProgramRecord> busiest_programs(const ProgramTimes& begin,
                                                               const ProgramTimes& end, double wall_s,
                                                               std::size_t most = 3);

}  // namespace paceline::measure
