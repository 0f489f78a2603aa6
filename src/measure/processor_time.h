#pragma once

/// Who used the processors while something was measured: this process, or others.

#include <optional>

#include "base/clock.h"

namespace paceline::measure {

/// Processor seconds spent up to one moment. The load average is no substitute: it still holds what ran a
/// minute ago, a build of this very program for one.
struct ProcessorTimes {
  base::TimePoint when{};
  double machine_s = 0;  ///< all processors: everything but idle; stolen by the hypervisor counts
  double own_s = 0;      ///< all threads of this process
};

/// Source   /proc/stat, in ticks of 10 ms; getrusage. nullopt where the system does not tell
[[nodiscard]] std::optional<ProcessorTimes> processor_times();

/// Cores that others kept busy between two moments, on average. `siblings_s` of that time went to other
/// processes of the same run on this machine, which are no others. nullopt for less than a second: ticks are
/// too coarse then.
[[nodiscard]] std::optional<double> cores_of_others(const std::optional<ProcessorTimes>& begin,
                                                    const std::optional<ProcessorTimes>& end,
                                                    double siblings_s = 0);

}  // namespace paceline::measure
