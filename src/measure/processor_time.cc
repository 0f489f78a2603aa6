#include "measure/processor_time.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <string>

namespace paceline::measure {
namespace {

double seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

}  // namespace

std::optional<ProcessorTimes> processor_times() {
  // "cpu user nice system idle iowait irq softirq steal ..."; "user" already includes guests.
  std::ifstream file("/proc/stat");
  std::string word;
  long long user = 0, nice = 0, system = 0, idle = 0, iowait = 0, irq = 0, softirq = 0, steal = 0;
  if (!(file >> word >> user >> nice >> system >> idle >> iowait >> irq >> softirq >> steal) || word != "cpu")
    return std::nullopt;
  rusage own{};
  if (::getrusage(RUSAGE_SELF, &own) != 0) return std::nullopt;
  const auto ticks = static_cast<double>(user + nice + system + irq + softirq + steal);
  return ProcessorTimes{.when = base::Clock::now(),
                        .machine_s = ticks / static_cast<double>(::sysconf(_SC_CLK_TCK)),
                        .own_s = seconds(own.ru_utime) + seconds(own.ru_stime)};
}

std::optional<double> cores_of_others(const std::optional<ProcessorTimes>& begin,
                                      const std::optional<ProcessorTimes>& end, double siblings_s) {
  constexpr double kLeastSeconds = 1;
  if (!begin || !end) return std::nullopt;
  const double wall = base::seconds(end->when - begin->when);
  if (wall < kLeastSeconds) return std::nullopt;
  const double ours = end->own_s - begin->own_s + siblings_s;
  return std::max(0.0, end->machine_s - begin->machine_s - ours) / wall;
}

}  // namespace paceline::measure
