#include "measure/disturbance.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <vector>

namespace paceline::measure {
namespace {

/// Fraction of the cores kept busy by others, above which times are unreliable.
constexpr double kBusy = 0.1;

std::string name_of_process(const GpuProcessRecord& process) {
  if (process.pid == 0) return "a process of another program";
  return process.name.empty() ? fmt::format("process {}", process.pid)
                              : fmt::format("{} (process {})", process.name, process.pid);
}

/// "python3 (process 41) was on GPU 0 too"
std::string disturbance_of(const GpuRecord& gpu) {
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

bool are_cores_disturbed(const Record& record) {
  return record.window.others_cores.value_or(0) > kBusy * record.environment.cores;
}

bool is_disturbed(const Record& record) {
  return are_cores_disturbed(record) || !disturbance_of_gpus(record).empty();
}

bool knows_others(const Record& record) {
  return record.window.others_cores.has_value() ||
         (record.gpus && std::any_of(record.gpus->begin(), record.gpus->end(),
                                     [](const GpuRecord& gpu) { return gpu.others.has_value(); }));
}

std::string disturbance_of_gpus(const Record& record) {
  std::vector<std::string> texts;
  if (record.gpus)
    for (const auto& gpu : *record.gpus)
      if (gpu.others && !gpu.others->empty()) texts.push_back(disturbance_of(gpu));
  return fmt::format("{}", fmt::join(texts, ", "));
}

std::string disturbance(const Record& record) {
  const auto of_gpus = disturbance_of_gpus(record);
  if (!are_cores_disturbed(record)) return of_gpus;
  // A process that was bound to some cores counts only those, but others may have used more.
  const double others = *record.window.others_cores;
  const int cores = record.environment.cores;
  const auto of_cores = others <= cores
                            ? fmt::format("other programs kept {:.2f} of {} cores busy", others, cores)
                            : fmt::format("other programs kept {:.2f} cores busy", others);
  return of_gpus.empty() ? of_cores : fmt::format("{}, and {}", of_cores, of_gpus);
}

}  // namespace paceline::measure
