#include "report/answers/wording.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <utility>

#include "base/text.h"
#include "measure/setting.h"
#include "report/sections/parts.h"
#include "report/text.h"

namespace paceline::report {
namespace {

using measure::Disturbance;
using measure::Record;
using measure::Setting;
using measure::SettingRole;

/// Whether an option is copied from one command to another: options that say what is trained and how, but not
/// how much is measured.
bool is_carried_over(Setting setting) {
  switch (setting.role()) {
    case SettingRole::fixed:
      return setting != "model" && setting != "data" && setting != "test-set";
    case SettingRole::precision:
    case SettingRole::execution:
    case SettingRole::remedy:
    case SettingRole::rule:
    case SettingRole::lr_scaling:
      return setting != "evaluate-every";
    default:
      return false;
  }
}

/// The options that were typed, as they were: {"--lr", "0.1"}, {"--bn=sync"}.
std::vector<std::vector<std::string>> typed_options(const std::string& command) {
  std::vector<std::vector<std::string>> options;
  for (auto& word : base::shell_words(command)) {
    if (word.starts_with("--"))
      options.push_back({std::move(word)});
    else if (!options.empty())
      options.back().push_back(std::move(word));
  }
  return options;
}

}  // namespace

std::string way_of(const analysis::Cell& cell) {
  const auto& record = cell.record();
  const int cores = analysis::cores_used(record);
  const int threads = cell.workers * cell.threads_per_worker;
  const std::string workers = counted(cell.workers, "worker");
  if (analysis::nodes(record) > 1) return workers + " as " + analysis::joined_as(record);
  std::string joined;
  if (analysis::processes(record) > 1) joined = ", " + analysis::joined_as(record);
  if (record.communication.parallel && cell.workers > 1) joined = ", " + *record.communication.parallel;
  if (cell.shares_gpus()) return fmt::format("{} that share a GPU{}", workers, joined);
  if (!is_on_cpu(cell)) return workers + joined;
  if (cell.oversubscribed) return fmt::format("{} on {}{}", workers, counted(cores, "core"), joined);
  if (cell.threads_per_worker > 1)
    return fmt::format("{}, {} threads{}{}", workers, cell.threads_per_worker,
                       cell.workers > 1 ? " each" : "", joined);
  return fmt::format("{}, {}{}{}", workers, threads == 1 ? "1 core" : "a core",
                     cell.workers > 1 ? " each" : "", joined);
}

std::string baseline_name(const analysis::Cell& cell) {
  if (cell.workers > 1 || !is_on_cpu(cell)) return way_of(cell);
  return cell.threads_per_worker == 1 ? "one core"
                                      : fmt::format("one worker of {} cores", cell.threads_per_worker);
}

bool is_on_cpu(const analysis::Cell& cell) {
  return cell.record().device.empty() || cell.record().device == "cpu";
}

BatchMemory memory_of(const Record& record) {
  const auto& memory = record.memory;
  if (memory.device) return {.plan = memory.device->plan_bytes, .peak = {}};
  return {.plan = memory.plan_bytes, .peak = memory.peak_bytes};
}

void mark_above_ideal(Point& point, const analysis::ScalingRow& row) {
  if (!row.is_baseline && row.efficiency.low > 1 && point.mark.empty()) point.mark = "above the ideal";
}

Figure::Mark beyond_cores(int cores) {
  return {.axis = 'x', .low = cores + 0.5, .label = fmt::format("more than {} cores", cores)};
}

std::string about(double ratio) {
  constexpr double kSmall = 0.01;
  return ratio < kSmall ? "under 1 %" : rough(100 * ratio) + " %";
}

std::string doubt_of(const analysis::Cell& cell) {
  if (!cell.emulated.empty()) return "emulated";
  if (cell.debug_build) return "debug build";
  if (cell.disturbance == Disturbance::disturbed) return mark_of(cell.disturbance);
  if (cell.step_s.n == 1) return "one step";
  if (cell.step_s.is_too_few) return "few steps";
  if (cell.records.size() == 1 && cell.is_timed()) return "one repeat";
  return mark_of(cell.disturbance);
}

std::string text_about_load(const std::vector<const analysis::Cell*>& cells) {
  double least = 0, most = 0, wall_s = 0;
  std::map<std::string, double> core_seconds;  // by program
  const Record *worst = nullptr, *paused = nullptr;
  for (const analysis::Cell* cell : cells)
    for (const Record* record : cell->records) {
      if (measure::stood_still(*record)) paused = record;
      if (measure::competitors(*record) == 0) continue;
      const double others = record->window.others_cores.value_or(0);
      least = worst == nullptr ? others : std::min(least, others);
      if (worst == nullptr || others > most) worst = record;
      most = std::max(most, others);
      wall_s += record->window.wall_s;
      if (record->window.others)
        for (const auto& program : *record->window.others)
          core_seconds[program.name] += program.cores * record->window.wall_s;
    }
  if (worst == nullptr) return paused == nullptr ? "" : measure::text_about_pause(*paused);
  if (most <= 0) return measure::text_about_disturbance(*worst);  // on GPUs alone
  constexpr double kNamed = 0.1;
  constexpr std::size_t kMost = 3;
  std::vector<std::string> names;
  for (const auto& [name, seconds] : largest_first(core_seconds))
    if (seconds > kNamed * wall_s && names.size() < kMost) names.push_back(name);
  const auto cores = [](double value) { return fmt::format("{:.1f}", value); };
  return fmt::format(
      "other programs{} kept {} {} busy", names.empty() ? "" : fmt::format(" ({})", fmt::join(names, ", ")),
      cores(least) == cores(most) ? cores(most) : fmt::format("{} to {}", cores(least), cores(most)),
      // A process that was bound to some cores counts only those, but others may have used more.
      most > worst->environment.cores ? "cores"
                                      : fmt::format("of {}", counted(worst->environment.cores, "core")));
}

std::string text_about_no_best(const analysis::OperatingPoint& point,
                               const std::vector<const analysis::Cell*>& cells) {
  if (point.left_out.empty()) {
    for (const analysis::Cell* cell : cells)
      if (!cell->reason.empty()) return fmt::format("No run gave a figure; the first: {}.", cell->reason);
    return "No run gave a figure.";
  }
  const auto configurations = [](std::ptrdiff_t number) { return counted(number, "configuration"); };
  const auto is_over = [](const auto& one) { return one.cell->status == "complete"; };
  const auto over = std::ranges::count_if(point.left_out, is_over);
  const auto all = std::ssize(point.left_out);
  if (over == 0)
    return fmt::format("{} measured in part: {}.", configurations(all), point.left_out.front().why);
  const char* shares = std::ranges::find_if(point.left_out, is_over)->cell->shares();
  if (over == all)
    return fmt::format("{} measured, {} {}.", configurations(all), all == 1 ? "with" : "each with", shares);
  return fmt::format("{} measured: {} with {}, {} in part.", configurations(all), over, shares, all - over);
}

void judge(Answer& answer, const analysis::Choice& choice) {
  using analysis::Standing;
  if (choice.standing == Standing::not_decided || (!choice.constant_load && !choice.unsettled.empty())) {
    answer.certainty = Certainty::not_decided;
    answer.chip = "not decided";
    return;
  }
  answer.certainty = choice.standing == Standing::tie ? Certainty::tie : Certainty::decided;
  if (choice.standing == Standing::tie) answer.chip = fmt::format("{} tie", choice.overlap.size() + 1);
  if (choice.constant_load) {
    answer.certainty = Certainty::careful;
    answer.chip = "machine as it is";
    if (const auto doubt = doubt_of(*choice.best); !doubt.empty() && doubt != mark_of(Disturbance::disturbed))
      answer.chip += ", " + doubt;
    return;
  }
  if (auto doubt = doubt_of(*choice.best); !doubt.empty()) {
    answer.certainty = Certainty::careful;
    answer.chip = answer.chip.empty() ? std::move(doubt) : fmt::format("{}, {}", answer.chip, doubt);
  }
}

void judge(Answer& answer, const analysis::Cell& cell) {
  answer.chip = doubt_of(cell);
  answer.certainty = answer.chip.empty() ? Certainty::decided : Certainty::careful;
}

Answer::Bars bars_of(const std::vector<const analysis::Cell*>& cells, const analysis::Cell* best,
                     const std::string& of, const std::function<std::string(const analysis::Cell&)>& what) {
  Answer::Bars bars;
  std::vector<std::string> names;
  for (const analysis::Cell* cell : cells) {
    if (cell == best) bars.chosen = static_cast<int>(bars.values.size());
    bars.values.push_back(cell->images_per_s.median);
    names.push_back(what(*cell));
  }
  bars.title = fmt::format("images/s with {} {}; dark: {}", listed(names), of, what(*best));
  return bars;
}

void take_figures(Answer& answer, const analysis::Estimate& estimate, const analysis::Cell& cell) {
  answer.value = estimate.median;
  take_interval(answer, estimate);
  answer.n = estimate.n;
  for (const Record* record : cell.records) answer.records.push_back(record->id);
}

Answer not_measured(std::string id, std::string question, std::string sentence, std::string command) {
  return {.id = std::move(id),
          .question = std::move(question),
          .certainty = Certainty::not_measured,
          .figure = std::string(sign_of(Certainty::not_measured)),
          .sentence = std::move(sentence),
          .command = std::move(command)};
}

bool is_quick(const Record& record) { return record.command.find(" --quick") != std::string::npos; }

std::string typed_value(const Record& record, std::string_view option) {
  std::string value;
  for (const auto& words : typed_options(record.command)) {
    if (words.front() == option && words.size() > 1)
      value = words[1];
    else if (words.front().starts_with(fmt::format("{}=", option)))
      value = words.front().substr(option.size() + 1);
  }
  return value;
}

std::string without_option(const std::string& command, std::string_view option) {
  std::string rest;
  bool is_value = false;
  for (const auto& word : base::shell_words(command)) {
    const bool is_left_out = (is_value && !word.starts_with("--")) || word == option ||
                             word.starts_with(fmt::format("{}=", option));
    is_value = word == option;
    if (!is_left_out) rest += (rest.empty() ? "" : " ") + base::shell_word(word);
  }
  return rest;
}

std::string into_a_new_directory(const std::string& command) { return without_option(command, "--out"); }

std::string epochs_text(double epochs) {
  const double hundredths = std::round(100 * epochs) / 100;
  if (hundredths == 1) return "1 epoch";
  return amount(hundredths > 0 ? hundredths : epochs) + " epochs";
}

bool is_evaluated(const measure::EpochRecord& epoch) {
  return epoch.test_accuracy || epoch.validation_accuracy;
}

Reached reached_in(const measure::EpochRecord& epoch) {
  if (epoch.test_accuracy) return {*epoch.test_accuracy, "test"};
  if (epoch.validation_accuracy) return {*epoch.validation_accuracy, "validation"};
  return {epoch.train_accuracy, "training"};
}

std::string command_like(const Record& record, std::string_view verb, std::string_view options) {
  std::string command = fmt::format("paceline {}", verb);
  if (!record.model.name.empty()) command += " --model " + base::shell_word(record.model.name);
  if (!record.data.spec.empty()) command += " --data " + base::shell_word(record.data.spec);
  if (record.device != "cpu" && !record.device.empty())
    command += " --device " + base::shell_word(record.device);
  bool says_rate = false;
  for (const auto& option : typed_options(record.command)) {
    const std::string key = option.front().substr(2, option.front().find('=') - 2);
    const auto setting = Setting::find(key);
    if (!setting || !is_carried_over(*setting) || *setting == "device") continue;
    says_rate = says_rate || *setting == "lr";
    for (const auto& word : option) command += " " + base::shell_word(word);
  }
  // A quick study lowers the rate by itself.
  const auto rate = record.settings.find("lr");
  if (!says_rate && rate != record.settings.end() && (verb == "train" || verb == "converge"))
    command += " --lr " + base::shell_word(rate->second);
  if (!options.empty()) command += fmt::format(" {}", options);
  return command;
}

}  // namespace paceline::report
