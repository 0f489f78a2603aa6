#include "measure/other_programs.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <optional>
#include <sstream>

namespace paceline::measure {
namespace {

struct Stat {
  std::string name;
  double processor_s = 0;
  std::int64_t started = 0;
};

/// "123 (name) S ppid ... utime stime ... starttime ...": a name may hold blanks and brackets.
std::optional<Stat> read_stat(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string text;
  // If a process ends between open and read, the read fails. getline keeps that error in the stream; an
  // istreambuf_iterator would throw it.
  if (!std::getline(file, text, '\0')) return std::nullopt;
  const auto open = text.find('('), close = text.rfind(')');
  if (open == std::string::npos || close == std::string::npos || close < open) return std::nullopt;
  std::istringstream rest(text.substr(close + 1));
  // Indices of the fields after the name, from 0.
  constexpr int kUserTime = 11, kSystemTime = 12, kStart = 19;
  std::int64_t ticks = 0;
  Stat stat{.name = text.substr(open + 1, close - open - 1)};
  std::string word;
  for (int field = 0; field <= kStart; ++field) {
    if (!(rest >> word)) return std::nullopt;
    if (field != kUserTime && field != kSystemTime && field != kStart) continue;
    std::int64_t value = 0;
    if (std::from_chars(word.data(), word.data() + word.size(), value).ec != std::errc()) return std::nullopt;
    (field == kStart ? stat.started : ticks) += value;
  }
  stat.processor_s = static_cast<double>(ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return stat;
}

}  // namespace

std::string own_program_name() {
  const auto own = read_stat("/proc/self/stat");
  return own ? own->name : "";
}

ProgramTimes program_times(const std::string& left_out) {
  ProgramTimes times;
  std::error_code error_of_list;
  for (std::filesystem::directory_iterator at("/proc", error_of_list), none; !error_of_list && at != none;
       at.increment(error_of_list)) {
    const auto& entry = *at;
    const std::string name = entry.path().filename().string();
    int id = 0;
    const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), id);
    if (error != std::errc() || end != name.data() + name.size() || id == ::getpid()) continue;
    const auto stat = read_stat(entry.path() / "stat");  // nullopt: the process has ended meanwhile
    if (!stat || (!left_out.empty() && stat->name == left_out)) continue;
    times.programs[{id, stat->started}] = {stat->name, stat->processor_s};
  }
  return times;
}

std::vector<OtherProgramRecord> busiest_programs(const ProgramTimes& begin, const ProgramTimes& end,
                                                 double wall_s, std::size_t most) {
  constexpr double kLeastSeconds = 1, kLeastCores = 0.02;
  if (wall_s < kLeastSeconds) return {};
  std::map<std::string, double> by_name;
  for (const auto& [key, program] : end.programs) {
    const auto before = begin.programs.find(key);
    by_name[program.name] +=
        program.processor_s - (before == begin.programs.end() ? 0 : before->second.processor_s);
  }
  std::vector<OtherProgramRecord> busiest;
  for (const auto& [name, seconds] : by_name)
    if (seconds / wall_s >= kLeastCores) busiest.push_back({.name = name, .cores = seconds / wall_s});
  std::stable_sort(busiest.begin(), busiest.end(),
                   [](const auto& a, const auto& b) { return a.cores > b.cores; });
  if (busiest.size() > most) busiest.resize(most);
  return busiest;
}

}  // namespace paceline::measure
