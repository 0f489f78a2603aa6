#include <malloc.h>
#include <sys/resource.h>

#include <algorithm>
#include <fstream>
#include <limits>
#include <string>

#include "base/cgroup.h"
#include "measure/environment.h"

namespace paceline::measure {
namespace {

/// The number after "Key:" in a file with lines "Key: 123 kB", in bytes; 0 if there is none.
std::int64_t kilobytes(const char* path, const std::string& key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.compare(0, key.size(), key) == 0) return std::stoll(line.substr(key.size())) * 1024;
  return 0;
}

}  // namespace

std::int64_t machine_memory_bytes() {
  const std::int64_t machine = kilobytes("/proc/meminfo", "MemTotal:");
  return std::min(machine, base::cgroup_limits().memory_bytes.value_or(machine));
}

std::int64_t available_memory_bytes() {
  const std::int64_t machine = kilobytes("/proc/meminfo", "MemAvailable:");
  return std::min(machine, base::cgroup_limits().memory_available_bytes.value_or(machine));
}

std::int64_t address_space_left() {
  rlimit limit{};
  constexpr std::int64_t kNoLimit = std::numeric_limits<std::int64_t>::max();
  if (::getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur >= static_cast<rlim_t>(kNoLimit)) return kNoLimit;
  return std::max<std::int64_t>(
      0, static_cast<std::int64_t>(limit.rlim_cur) - kilobytes("/proc/self/status", "VmSize:"));
}

std::int64_t resident_bytes() { return kilobytes("/proc/self/status", "VmRSS:"); }

std::int64_t peak_resident_bytes() { return kilobytes("/proc/self/status", "VmHWM:"); }

void release_free_memory() { ::malloc_trim(0); }

bool reset_peak_memory() {
  std::ofstream file("/proc/self/clear_refs");
  file << "5" << std::flush;  // 5: only the peak (proc(5)); a container may forbid it
  return file.good();
}

}  // namespace paceline::measure
