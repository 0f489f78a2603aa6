#pragma once

/// Decides whether other programs used the processors or GPUs of a run while it was measured, or whether it
/// stood still. Studies, reports, comparisons and checks use the same rule.

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "measure/record.h"

namespace paceline::measure {

/// Processor seconds up to one moment. (The load average is no substitute: it still contains programs of a
/// minute ago.)
struct ProcessorTimes {
  base::TimePoint when{};
  double machine_s = 0;  ///< all processors: everything but idle; time stolen by the hypervisor counts
  double own_s = 0;      ///< all threads of this process
};

/// A window of this length certainly knows of other programs: a second of ticks, and some time for its ends.
inline constexpr double kKnownWindow_s = 1.25;

/// Reads /proc/stat, in ticks of 10 ms, and getrusage. nullopt if the system does not provide them.
[[nodiscard]] std::optional<ProcessorTimes> processor_times();

/// The mean number of cores that others kept busy between two moments. `siblings_s` is processor time of
/// other processes of the same run on this machine, which do not count as others. nullopt for less than a
/// second, for which ticks are too coarse.
[[nodiscard]] std::optional<double> cores_of_others(const std::optional<ProcessorTimes>& begin,
                                                    const std::optional<ProcessorTimes>& end,
                                                    double siblings_s = 0);

// Names the other programs that used the processor during a measurement.

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

/// What other programs do now.
struct LoadNow {
  double cores = 0;                          ///< that they keep busy, on average
  std::vector<OtherProgramRecord> programs;  ///< busiest_programs(): none for less than a second
};
/// Watches for `seconds`, in which this process should do nothing: at least 0.2, since ticks are 10 ms.
/// nullopt if the system does not say.
[[nodiscard]] std::optional<LoadNow> load_now(double seconds);

/// Whether so many cores of others make times unreliable: more than a tenth of `cores`.
[[nodiscard]] bool is_much(double others_cores, int cores);

/// Whether other programs worked on the processors or GPUs of a run while it was measured, or it stood still.
enum class Disturbance : std::uint8_t {
  none,       ///< it is known that they did not
  maybe,      ///< it is not known: the window was shorter than a second, or the system does not say
  disturbed,  ///< they did: its times are upper bounds, and its rates lower bounds
};

/// Disturbed: others kept more than a tenth of the record's cores busy, or had one of its GPUs open, or it
/// stood_still().
[[nodiscard]] Disturbance disturbance_of(const Record& record);

/// Whether a process of the run stood still for more than 0.2 % of its window (measure/pauses.h): times that
/// hold such a pause are those of no machine.
[[nodiscard]] bool stood_still(const Record& record);

/// "the run stood still for 4.0 s (it was stopped, or its machine was)"
///
/// Requires  the record stood_still()
[[nodiscard]] std::string text_about_pause(const Record& record);

/// The same for processors and pauses alone. (Of a process on a GPU it is not known whether it computes or is
/// idle.)
[[nodiscard]] Disturbance disturbance_of_cores(const Record& record);

/// The programs of others that compete with the run, at least: the cores that they kept busy, rounded up, and
/// the processes on its busiest GPU. 0 if it was not disturbed, or if that is not known.
[[nodiscard]] int competitors(const Record& record);

/// "other programs kept 0.75 of 2 cores busy", "python3 (process 41) was on GPU 0 too", text_about_pause(),
/// or several of them.
///
/// Requires  the record was disturbed
[[nodiscard]] std::string text_about_disturbance(const Record& record);

/// The part about GPUs alone; "" if no other program used them. Every other process seen on a GPU counts,
/// even for a part of the window and even if idle, since it holds memory and may compute at any time.
[[nodiscard]] std::string text_about_disturbance_of_gpus(const Record& record);

}  // namespace paceline::measure
