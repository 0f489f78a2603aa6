#include "measure/disturbance.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/file.h"
#include "base/text.h"

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
    const auto value = base::to_number<std::int64_t>(word);
    if (!value) return std::nullopt;
    (field == kStart ? stat.started : ticks) += *value;
  }
  stat.processor_s = static_cast<double>(ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return stat;
}

/// Fraction of the cores kept busy by others, above which times are unreliable.
constexpr double kBusy = 0.1;

bool shared_cores(const Record& record) {
  return record.window.others_cores && is_much(*record.window.others_cores, record.environment.cores);
}

std::string name_of_process(const GpuProcessRecord& process) {
  if (process.pid == 0) return "a process of another program";
  return process.name.empty() ? fmt::format("process {}", process.pid)
                              : fmt::format("{} (process {})", process.name, process.pid);
}

/// "python3 (process 41) was on GPU 0 too"
std::string text_about_processes(const GpuRecord& gpu) {
  constexpr std::size_t kMost = 3;
  const auto& others = *gpu.others;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(kMost, others.size()); ++i)
    names.push_back(name_of_process(others[i]));
  if (others.size() > kMost) names.push_back(fmt::format("{} more", others.size() - kMost));
  return fmt::format("{} {} on GPU {}{} too", fmt::join(names, ", "), others.size() == 1 ? "was" : "were",
                     gpu.index, gpu.host ? " of " + *gpu.host : "");
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
                        .own_s = base::processor_s(own)};
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

std::string own_program_name() {
  const auto own = read_stat("/proc/self/stat");
  return own ? own->name : "";
}

ProgramTimes program_times(const std::string& left_out) {
  ProgramTimes times;
  for (const auto& entry : base::entries_of("/proc")) {
    const auto id = base::to_number<int>(entry.path().filename().string());
    if (!id || *id == ::getpid()) continue;
    const auto stat = read_stat(entry.path() / "stat");  // nullopt: the process has ended meanwhile
    if (!stat || (!left_out.empty() && stat->name == left_out)) continue;
    times.programs[{*id, stat->started}] = {stat->name, stat->processor_s};
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

std::optional<LoadNow> load_now(double seconds) {
  const std::string own = own_program_name();
  const auto programs = program_times(own);
  const auto begin = processor_times();
  std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  const auto end = processor_times();
  if (!begin || !end) return std::nullopt;
  const double wall_s = base::seconds(end->when - begin->when);
  const double others_s = end->machine_s - begin->machine_s - (end->own_s - begin->own_s);
  return LoadNow{std::max(0.0, others_s) / wall_s, busiest_programs(programs, program_times(own), wall_s)};
}

bool is_much(double others_cores, int cores) { return others_cores > kBusy * cores; }

bool stood_still(const Record& record) {
  constexpr double kNegligible = 0.002;
  return record.window.paused_s && *record.window.paused_s > kNegligible * record.window.wall_s;
}

std::string text_about_pause(const Record& record) {
  return fmt::format("the run stood still for {:.1f} s (it was stopped, or its machine was)",
                     *record.window.paused_s);
}

Disturbance disturbance_of_cores(const Record& record) {
  if (shared_cores(record) || stood_still(record)) return Disturbance::disturbed;
  return record.window.others_cores ? Disturbance::none : Disturbance::maybe;
}

Disturbance disturbance_of(const Record& record) {
  const Disturbance of_cores = disturbance_of_cores(record);
  if (of_cores == Disturbance::disturbed || !text_about_disturbance_of_gpus(record).empty())
    return Disturbance::disturbed;
  const bool knows_gpus =
      record.gpus && std::any_of(record.gpus->begin(), record.gpus->end(),
                                 [](const GpuRecord& gpu) { return gpu.others.has_value(); });
  return knows_gpus ? Disturbance::none : of_cores;
}

int competitors(const Record& record) {
  int most = 0;
  if (shared_cores(record)) most = static_cast<int>(std::ceil(*record.window.others_cores));
  if (record.gpus)
    for (const auto& gpu : *record.gpus)
      if (gpu.others) most = std::max(most, static_cast<int>(gpu.others->size()));
  return most;
}

std::string text_about_disturbance_of_gpus(const Record& record) {
  std::vector<std::string> texts;
  if (record.gpus)
    for (const auto& gpu : *record.gpus)
      if (gpu.others && !gpu.others->empty()) texts.push_back(text_about_processes(gpu));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string text_about_disturbance(const Record& record) {
  std::vector<std::string> texts;
  // A process that was bound to some cores counts only those, but others may have used more.
  const double others = record.window.others_cores.value_or(0);
  const int cores = record.environment.cores;
  if (shared_cores(record))
    texts.push_back(others <= cores
                        ? fmt::format("other programs kept {:.2f} of {} cores busy", others, cores)
                        : fmt::format("other programs kept {:.2f} cores busy", others));
  if (const auto of_gpus = text_about_disturbance_of_gpus(record); !of_gpus.empty()) texts.push_back(of_gpus);
  if (stood_still(record)) texts.push_back(text_about_pause(record));
  return fmt::format("{}", fmt::join(texts, ", and "));
}

}  // namespace paceline::measure
