#include "measure/environment.h"

#include <fmt/core.h>
#include <malloc.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <limits>
#include <string_view>
#include <utility>

#include "base/process.h"
#include "base/text.h"
#include "base/topology.h"

namespace paceline::measure {
namespace {

/// What follows `key` in the first line of a file that begins with it; "" if none does.
std::string behind_key(const char* path, std::string_view key) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);)
    if (line.starts_with(key)) return line.substr(key.size());
  return "";
}

std::string cpu_model() {
  std::string model = base::cpu_info("model name");
  if (model.empty()) model = base::cpu_info("Model");  // some ARM kernels
  utsname system{};
  if (model.empty() && ::uname(&system) == 0) model = system.machine;
  return model;
}

std::vector<std::string> instruction_sets() {
  // Instruction sets that decide which kernels run. x86 calls the line "flags", ARM "Features".
  constexpr std::array kOfInterest{"avx2",        "fma",         "avx512f",  "avx512_vnni",
                                   "avx512_bf16", "avx512_fp16", "amx_tile", "amx_bf16",
                                   "asimd",       "sve",         "sve2",     "bf16"};
  const auto present = base::words_of(base::cpu_info("flags") + " " + base::cpu_info("Features"));
  std::vector<std::string> found;
  for (const char* name : kOfInterest)
    if (std::ranges::find(present, name) != present.end()) found.emplace_back(name);
  return found;
}

std::string operating_system() {
  auto name = behind_key("/etc/os-release", "PRETTY_NAME=");
  if (name.size() >= 2 && name.front() == '"') name = name.substr(1, name.size() - 2);
  if (name.empty()) name = "unknown system";
  utsname system{};
  if (::uname(&system) == 0) name += fmt::format(", {} {}", system.sysname, system.release);
  return name;
}

double load_average() {
  double load = 0;
  return ::getloadavg(&load, 1) == 1 ? load : 0;
}

/// The number after "Key:" in a file with lines "Key: 123 kB", in bytes; 0 if there is none.
std::int64_t kilobytes(const char* path, std::string_view key) {
  const auto number = behind_key(path, key);
  return number.empty() ? 0 : std::stoll(number) * 1024;
}

/// Memory of the machine where /proc is not mounted; what is free leaves out what the system could reclaim.
struct MemoryWithoutProc {
  std::int64_t all = 0, free = 0;
};
MemoryWithoutProc memory_without_proc() {
  struct sysinfo info {};
  if (::sysinfo(&info) != 0) return {};
  return {.all = static_cast<std::int64_t>(info.totalram) * info.mem_unit,
          .free = static_cast<std::int64_t>(info.freeram + info.bufferram) * info.mem_unit};
}

}  // namespace

Environment environment(std::vector<std::string> libraries) {
  return {.host = base::host_name(),
          .cpu = cpu_model(),
          .cores = base::usable_cores(),
          .memory_bytes = machine_memory_bytes(),
          .instructions = instruction_sets(),
          .os = operating_system(),
          .compiler = compiler(),
          .build = build_type(),
          .version = version(),
          .libraries = std::move(libraries),
          .load_before = load_average()};
}

std::string utc_now() {
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  ::gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

double unix_now() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

std::int64_t machine_memory_bytes() {
  std::int64_t machine = kilobytes("/proc/meminfo", "MemTotal:");
  if (machine == 0) machine = memory_without_proc().all;
  return std::min(machine, base::cgroup_limits().memory_bytes.value_or(machine));
}

std::int64_t available_memory_bytes() {
  std::int64_t machine = kilobytes("/proc/meminfo", "MemAvailable:");
  if (machine == 0) machine = memory_without_proc().free;
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
