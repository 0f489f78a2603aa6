#include "cli/plan_time.h"

#include <algorithm>
#include <system_error>
#include <utility>

#include "analysis/compare/cell.h"
#include "cli/screen/remaining_time.h"
#include "measure/environment.h"
#include "measure/setting.h"
#include "train/given/option_rows.h"

namespace paceline::cli {
namespace {

namespace fs = std::filesystem;
constexpr std::size_t kMostRecords = 200;
constexpr int kDeepest = 3;  ///< paceline-out/study/records/x.json

bool touches_time(const std::string& key) {
  const auto setting = measure::Setting::find(key);
  return !setting || setting->on_time() == measure::Effect::refuse;
}

bool is_like(const measure::Record& record, const std::string& cpu, const train::Options& options,
             const train::Setup& setup) {
  const auto& run = setup.resolved;
  if (record.workers != run.workers || record.local_batch != run.local_batch ||
      record.threads_per_worker != run.threads || record.precision != train::name(run.precision) ||
      record.environment.cpu != cpu || record.model.parameters != setup.model.parameters ||
      record.ranks.empty() || record.window.steps == 0)
    return false;
  const auto different = train::differences(record.settings, train::settings(options));
  return std::ranges::none_of(different, [](const auto& one) { return touches_time(one.setting); });
}

bool waits_for_time(const train::Options& options) {
  return options.window_steps > 0 && options.least_window_seconds > 0;
}

}  // namespace

std::optional<std::int64_t> fewest_steps(const train::Options& options) {
  if (options.window_steps == 0) return std::nullopt;
  if (options.window_seconds > 0)
    return options.warmup_steps +
           (options.window_steps > 0 ? std::min(options.window_steps, kLeastWindowSteps) : kLeastWindowSteps);
  if (waits_for_time(options)) return options.warmup_steps + options.window_steps;
  return std::nullopt;
}

KnownTimes::KnownTimes(const std::vector<fs::path>& directories) {
  std::vector<std::pair<fs::file_time_type, fs::path>> found;
  for (const auto& directory : directories) {
    std::error_code none;
    for (fs::recursive_directory_iterator entry(directory, none), end; !none && entry != end;
         entry.increment(none)) {
      if (entry.depth() >= kDeepest) entry.disable_recursion_pending();
      const auto& path = entry->path();
      const bool is_record = path.filename() == "record.json" ||
                             (path.extension() == ".json" && path.parent_path().filename() == "records");
      std::error_code gone;
      if (is_record) found.emplace_back(fs::last_write_time(path, gone), path);
    }
  }
  std::ranges::sort(found, std::greater<>());
  const auto doubles = std::ranges::unique(found);
  found.erase(doubles.begin(), doubles.end());
  if (found.size() > kMostRecords) found.resize(kMostRecords);
  for (const auto& [written, path] : found) {
    try {
      records_.push_back({path, measure::read_record(path)});
    } catch (const base::Error&) {
      continue;  // damaged, or another version
    }
  }
}

std::optional<KnownTime> KnownTimes::of(const train::Options& options, const train::Setup& setup) const {
  const bool is_window = options.window_steps != 0;
  const auto cpu = measure::environment().cpu;
  for (const auto& [path, record] : records_) {
    if (!is_like(record, cpu, options, setup)) continue;
    // A training's record gives the time of a whole training; a window's record the time of steps.
    const bool is_training = !is_window && record.window.unit == "epoch" && !record.epochs.empty();
    const double begin = record.first_step_s.value_or(0);
    if (is_training)
      return KnownTime{begin + record.ranks.front().wall_s / static_cast<double>(record.window.steps) *
                                   static_cast<double>(setup.resolved.end),
                       path.string()};
    auto steps = analysis::step_seconds(record);
    if (steps.empty()) continue;
    const auto middle = steps.begin() + static_cast<std::ptrdiff_t>(steps.size() / 2);
    std::ranges::nth_element(steps, middle);
    const auto steps_of_window =
        waits_for_time(options) ? options.window_steps : setup.resolved.end - options.warmup_steps;
    const double seconds = is_window
                               ? seconds_of_window(options, *middle, static_cast<double>(steps_of_window))
                               : *middle * static_cast<double>(setup.resolved.end);
    return KnownTime{begin + seconds, path.string()};
  }
  return std::nullopt;
}

}  // namespace paceline::cli
