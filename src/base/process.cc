#include "base/process.h"

#include <fcntl.h>
#include <fmt/core.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstring>
#include <fstream>
#include <functional>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.h"
#include "base/file.h"
#include "base/text.h"

namespace paceline::base {
namespace {

namespace fs = std::filesystem;

/// cgroup v1 writes "no limit" as the largest multiple of a page; real limits are far below.
constexpr std::int64_t kNoLimit = std::int64_t{1} << 60;

std::optional<std::int64_t> number(const fs::path& path) {
  const auto line = first_line_of(path).value_or("");
  std::string_view text = line;
  return take_number<std::int64_t>(text);
}

/// The value behind `key` in a file of lines "key value".
std::int64_t entry(const fs::path& path, const std::string& key) {
  std::ifstream file(path);
  std::string name;
  for (std::int64_t value = 0; file >> name >> value;)
    if (name == key) return value;
  return 0;
}

template <typename T>
void lower(std::optional<T>& limit, T value) {
  limit = limit ? std::min(*limit, value) : value;
}

/// Calls `look` for the group's folder and all folders above it, up to the mount. Folders that are not
/// visible here (in a container) have no files and are skipped.
void walk_up(const fs::path& mount, fs::path group, const std::function<void(const fs::path&)>& look) {
  for (;; group = group.parent_path()) {
    look(group.empty() ? mount : mount / group);
    if (group.empty()) return;
  }
}

/// Calls `take` with each group of this process and its controllers, ",cpu,cpuacct,"; those of v2: ",,".
void for_each_group(const fs::path& root,
                    const std::function<void(std::string_view controllers, const fs::path& group)>& take) {
  std::ifstream file(root / "proc/self/cgroup");
  for (std::string line; std::getline(file, line);) {  // "4:memory:/a/b" (v1) or "0::/a/b" (v2)
    const auto first = line.find(':');
    const auto second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    take(fmt::format(",{},", line.substr(first + 1, second - first - 1)),
         fs::path(line.substr(second + 1)).relative_path());
  }
}

void read_memory(const fs::path& folder, const char* limit_name, const char* used_name, const char* file_key,
                 CgroupLimits& limits) {
  const auto limit = number(folder / limit_name);
  if (!limit || *limit < 0 || *limit >= kNoLimit) return;
  lower(limits.memory_bytes, *limit);
  // The page cache of inactive files counts as used but is freed on demand.
  const std::int64_t used = number(folder / used_name).value_or(0) - entry(folder / "memory.stat", file_key);
  lower(limits.memory_available_bytes, std::max<std::int64_t>(0, *limit - std::max<std::int64_t>(0, used)));
}

void read_cpu_v1(const fs::path& folder, CgroupLimits& limits) {
  const auto quota = number(folder / "cpu.cfs_quota_us"), period = number(folder / "cpu.cfs_period_us");
  if (quota && period && *quota > 0 && *period > 0)
    lower(limits.cpus, static_cast<double>(*quota) / static_cast<double>(*period));
}

void read_cpu_v2(const fs::path& folder, CgroupLimits& limits) {
  const auto line = first_line_of(folder / "cpu.max");  // "150000 100000", or "max 100000"
  if (!line) return;
  std::istringstream words(*line);
  double quota = 0, period = 0;
  if (words >> quota >> period && quota > 0 && period > 0) lower(limits.cpus, quota / period);
}

/// The file has the same name in both versions; "max" means no limit.
void read_threads(const fs::path& folder, CgroupLimits& limits) {
  if (const auto most = number(folder / "pids.max")) lower(limits.threads, *most);
}

using Bytes = std::array<char, 512>;

/// Reads the beginning of /proc/PID/NAME. Allocates nothing, since it may run between fork() and exec().
std::string_view read_of_process(pid_t process, const char* name, Bytes& bytes) {
  std::array<char, 64> path{"/proc/"};
  const auto number = std::to_chars(path.data() + std::strlen(path.data()), path.data() + 32, process);
  std::strcpy(number.ptr, name);
  const Descriptor file(::open(path.data(), O_RDONLY | O_CLOEXEC));
  const auto count = ::read(file.get(), bytes.data(), bytes.size());
  return {bytes.data(), count > 0 ? static_cast<std::size_t>(count) : 0};
}

}  // namespace

CgroupLimits cgroup_limits(const fs::path& root) {
  CgroupLimits limits;
  const fs::path mounts = root / "sys/fs/cgroup";
  for_each_group(root, [&](std::string_view controllers, const fs::path& group) {
    const auto is_of = [&](std::string_view one) { return controllers.find(one) != std::string_view::npos; };
    if (controllers == ",,")
      for (const fs::path& mount : {mounts, mounts / "unified"})
        walk_up(mount, group, [&](const fs::path& folder) {
          read_memory(folder, "memory.max", "memory.current", "inactive_file", limits);
          read_cpu_v2(folder, limits);
          read_threads(folder, limits);
        });
    if (is_of(",memory,"))
      walk_up(mounts / "memory", group, [&](const fs::path& folder) {
        read_memory(folder, "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file", limits);
      });
    if (is_of(",cpu,"))
      for (const char* mount : {"cpu", "cpu,cpuacct"})
        walk_up(mounts / mount, group, [&](const fs::path& folder) { read_cpu_v1(folder, limits); });
    if (is_of(",pids,"))
      walk_up(mounts / "pids", group, [&](const fs::path& folder) { read_threads(folder, limits); });
  });
  return limits;
}

std::optional<std::int64_t> out_of_memory_kills(const fs::path& root) {
  const fs::path mounts = root / "sys/fs/cgroup";
  std::vector<fs::path> counters;
  for_each_group(root, [&](std::string_view controllers, const fs::path& group) {
    if (controllers == ",,")  // the last one: in a container, its own group
      for (const auto& folder : {mounts / group, mounts / "unified" / group, mounts})
        counters.push_back(folder / "memory.events");
    if (controllers.find(",memory,") != std::string_view::npos)
      for (const auto& folder : {mounts / "memory" / group, mounts / "memory"})
        counters.push_back(folder / "memory.oom_control");
  });
  counters.push_back(root / "proc/vmstat");
  for (const auto& counter : counters)
    if (is_there(counter)) return entry(counter, "oom_kill");
  return std::nullopt;
}

char state_of_process(pid_t process) {
  Bytes bytes;
  const auto text = read_of_process(process, "/stat", bytes);
  // "PID (name) STATE ...", where a name may contain any characters.
  const auto name_end = text.rfind(')');
  return name_end == std::string_view::npos || name_end + 2 >= text.size() ? '\0' : text[name_end + 2];
}

std::optional<std::int64_t> ran_for_ns(pid_t process) {
  Bytes bytes;
  auto text = read_of_process(process, "/schedstat", bytes);  // "RAN WAITED TIMES"
  const auto ran = take_number<std::int64_t>(text);
  return ran && *ran > 0 ? ran : std::nullopt;
}

}  // namespace paceline::base
