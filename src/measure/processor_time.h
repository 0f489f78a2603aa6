#pragma once

/// Measures how much this process and others used the processor.

#include <optional>

#include "base/clock.h"

namespace paceline::measure {

/// Processor seconds up to one moment. (The load average is no substitute: it still contains programs of a
/// minute ago.)
struct ProcessorTimes {
  base::TimePoint when{};
  double machine_s = 0;  ///< all processors: everything but idle; time stolen by the hypervisor counts
  double own_s = 0;      ///< all threads of this process
};

/// Reads /proc/stat, in ticks of 10 ms, and getrusage. nullopt if the system does not provide them.
[[nodiscard]] std::optional<ProcessorTimes> processor_times();

/// The mean number of cores that others kept busy between two moments. `siblings_s` is processor time of
/// other processes of the same run on this machine, which do not count as others. nullopt for less than a
/// second, for which ticks are too coarse.
[[nodiscard]] std::optional<double> cores_of_others(const std::optional<ProcessorTimes>& begin,
                                                    const std::optional<ProcessorTimes>& end,
                                                    double siblings_s = 0);

}  // namespace paceline::measure
