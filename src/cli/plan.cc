#include "cli/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "base/topology.h"
#include "cli/commands/commands.h"
#include "cli/options/arguments.h"
#include "cli/plan_time.h"
#include "cli/quiet_moment.h"
#include "cli/reports.h"
#include "cli/screen/screen.h"
#include "cluster/make_backend.h"
#include "study/settle.h"
#include "train/given/option_rows.h"
#include "train/run.h"

namespace paceline::cli {
namespace {

using Json = nlohmann::ordered_json;

/// "recipes/mnist.toml:7" from "recipes/mnist.toml:7: lr"; "typed" for an option that begins with dashes.
std::string origin_of(const std::string& where) {
  if (where.starts_with("-")) return "typed";
  return where.substr(0, where.rfind(": "));
}

/// What a command would do; its JSON and its text are made from this.
struct Plan {
  const Settings& settings;
  std::vector<study::PlannedCell> cells;  ///< those that are left out have the reason as their `skip`

  // Over the cells that would be run.
  std::size_t run = 0;
  std::int64_t updates = 0;
  bool has_windows_by_time = false;       ///< `updates` are the fewest
  std::optional<train::Setup> largest{};  ///< of the cell with the largest memory plan
  std::string largest_id{};
  std::string excess{};  ///< of the first cell that does not fit

  // Their time.
  std::size_t known = 0;       ///< cells whose time an older record gives
  double known_s = 0;          ///< of these
  std::string record{};        ///< that gives the first of these times
  std::size_t calibrated = 0;  ///< cells whose time was estimated from a calibration
  double calibrated_s = 0;     ///< of these
  std::string calibration{};   ///< what was timed for that
  double repeats_s = 0;        ///< the most that repeats may take (study/settle.h)
  double waits_s = 0;          ///< the most that is waited for a quiet moment before them

  [[nodiscard]] bool is_of_training() const { return settings.command == kTrain; }
  [[nodiscard]] bool has_time() const { return known + calibrated > 0; }
  [[nodiscard]] std::string time_from() const {
    if (!has_time())
      return "no record of the same set-up is in the output directory or paceline-out; a short run "
             "(--steps 20) leaves one";
    return calibrated > 0 ? calibration : record.empty() ? "its own option" : record;
  }
  /// Empty if the time of all cells is known.
  [[nodiscard]] std::string of_cells() const {
    if (!has_time() || known + calibrated == run) return "";
    return fmt::format("{} of {}; no record has the time of the others", known + calibrated, run);
  }
};

struct OfCell {
  train::Setup setup;
  std::optional<KnownTime> time;
};

void add_cell(const OfCell& of_cell, const study::PlannedCell& cell, Plan& plan) {
  const auto& [setup, time] = of_cell;
  const auto fewest = fewest_steps(cell.options);
  plan.updates += fewest.value_or(setup.resolved.end);
  plan.has_windows_by_time |= fewest.has_value();
  if (time) {
    ++plan.known;
    plan.known_s += time->seconds;
    if (plan.record.empty()) plan.record = time->from;
  }
  if (!setup.excess.empty()) {
    if (plan.excess.empty()) plan.excess = setup.excess;
  } else if (!plan.largest || setup.memory.plan_bytes > plan.largest->memory.plan_bytes) {
    plan.largest = setup;
    plan.largest_id = cell.id;
  }
}

/// The cells whose time no record tells are timed with a few steps.
void calibrate_cells(const std::vector<std::size_t>& unknown, Plan& plan, std::vector<double>& repeats) {
  if (!plan.settings.calibrate || unknown.empty()) return;
  const auto some = study::subset(plan.cells, unknown);
  auto found = calibrate(some, plan.settings.planned_nodes * base::usable_cores());
  plan.calibration = std::move(found.text);
  for (std::size_t i = 0; i < some.size(); ++i) {
    if (!found.seconds[i]) continue;
    if (some[i].is_spare) {
      repeats.push_back(*found.seconds[i]);
      continue;
    }
    ++plan.calibrated;
    plan.calibrated_s += some[i].chance * *found.seconds[i];
  }
}

/// Plans all cells. If there are several, impossible ones get their reason as `skip`, since the study will
/// leave them out.
///
/// Errors   those of train::inspect() for a single cell, of a training those of train::rehearse(), or if no
///          cell is possible
void plan_cells(const train::Backend& backend, const KnownTimes& times, Plan& plan) {
  // Cells with equal options are planned once, since repeats have the same memory and time.
  std::map<std::map<std::string, std::string>, OfCell> planned;
  const auto plan_of = [&](const train::Options& options) -> const OfCell& {
    auto key = train::settings(options);
    key["workers"] = std::to_string(options.workers);  // not in the settings of every record
    key.erase("seed");
    if (const auto found = planned.find(key); found != planned.end()) return found->second;
    // A training opens more than a cell of a study.
    auto setup = plan.is_of_training() ? train::rehearse(options, backend) : train::inspect(options, backend);
    auto time = times.of(options, setup);
    return planned.emplace(std::move(key), OfCell{std::move(setup), std::move(time)}).first->second;
  };
  std::optional<base::Error> impossible;
  std::vector<std::size_t> unknown;  // cells whose time no record tells
  std::vector<double> repeats;
  for (std::size_t i = 0; i < plan.cells.size(); ++i) {  // spare cells stand behind those that they repeat
    auto& cell = plan.cells[i];
    if (!cell.skip.empty()) continue;
    if (cell.is_of_collectives()) {
      ++plan.run;
      ++plan.known;
      plan.known_s += cell.collectives_s;
      continue;
    }
    try {
      const auto& of_cell = plan_of(cell.options);
      if (!of_cell.time && of_cell.setup.excess.empty()) unknown.push_back(i);
      if (cell.is_spare) {
        if (of_cell.time) repeats.push_back(of_cell.time->seconds);
        continue;
      }
      ++plan.run;
      add_cell(of_cell, cell, plan);
    } catch (const base::Error& error) {
      if (cell.is_spare) continue;
      if (plan.cells.size() == 1 || error.kind() != ErrorKind::usage) throw;
      if (!impossible) impossible = error;
      cell.skip = error.what();
    }
  }
  if (plan.run == 0 && impossible) throw *impossible;
  calibrate_cells(unknown, plan, repeats);
  std::ranges::sort(repeats, std::greater());
  repeats.resize(std::min(repeats.size(), plan.settings.study.most_repeats));
  for (const double seconds : repeats) plan.repeats_s += seconds;
  plan.waits_s = kMostWaitsOfRepeat_s * static_cast<double>(plan.settings.study.most_repeats);
}

std::vector<std::string> files_of(const Plan& plan, const std::filesystem::path& directory) {
  std::vector<std::string> names{"records/",  "events.jsonl", "report.html",
                                 "report.md", "report.json",  "csv/"};
  if (plan.is_of_training()) {
    names = {"record.json", "events.jsonl"};
    if (plan.largest && plan.largest->checkpoint_bytes > 0) names.emplace_back("checkpoint-*.safetensors");
    if (plan.settings.tensorboard) names.emplace_back("tensorboard/");
  }
  for (auto& name : names) name = (directory / name).string();
  if (!plan.settings.train.timeline.empty()) names.push_back(plan.settings.train.timeline.string());
  return names;
}

/// A plan in both forms: each fact is added to its JSON and to its text at once.
struct Written {
  Json json;
  std::string text{};

  void add(const char* key, Json value) { json[key] = std::move(value); }
  void line(const char* label, const std::string& words) { text += fmt::format("{:<9} {}\n", label, words); }
};

void write_settings(const Plan& plan, Written& out) {
  Json all = Json::array();
  int usual = 0;
  out.text += "settings\n";
  for (const auto& [name, value, origin] : planned_settings(plan.settings)) {
    all.push_back({{"name", name}, {"value", value}, {"origin", origin}});
    if (origin == "default")
      ++usual;
    else
      out.text += fmt::format("  {:<20} {:<28} {}\n", name, value, origin);
  }
  out.text += fmt::format("  {} more have their defaults; --json lists them with all cells\n", usual);
  out.add("settings", std::move(all));
  out.add("notes", plan.settings.notes);
  for (const auto& note : plan.settings.notes) out.line("note", note);
}

void write_memory(const Plan& plan, const train::Setup& setup, Written& out) {
  const auto& memory = setup.memory;
  const auto of = [](std::int64_t bytes, std::int64_t available) {
    return fmt::format("{:.2f} GB of {:.2f} GB", base::gigabytes(bytes), base::gigabytes(available));
  };
  const bool is_of_training = plan.is_of_training();
  Json json{{"bytes", memory.plan_bytes}, {"available_bytes", memory.available_bytes}};
  if (!is_of_training) json["cell"] = plan.largest_id;
  out.line("memory",
           fmt::format("{}{}{}", of(memory.plan_bytes, memory.available_bytes),
                       plan.settings.planned_processes > 1 ? ", of each process" : "",
                       is_of_training ? "" : fmt::format(" (the largest cell, {})", plan.largest_id)));
  auto& lines = json["lines"] = Json::object();
  for (const auto& line : setup.plan.lines) {
    const auto name = (line.place == graph::MemoryPlan::Place::device ? "device: " : "") + line.purpose;
    lines[name] = lines.value(name, std::int64_t{0}) + line.bytes;
  }
  if (memory.device) {
    json["device_bytes"] = memory.device->plan_bytes;
    json["device_available_bytes"] = memory.device->available_bytes;
    out.line("device", of(memory.device->plan_bytes, memory.device->available_bytes));
  }
  out.add("memory", std::move(json));
}

void write_setup(const Plan& plan, const train::Setup& setup, Written& out) {
  const auto& model = setup.model;
  const auto& data = setup.data;
  out.add("model", {{"name", model.name}, {"parameters", model.parameters}});
  out.line("model", fmt::format("{}, {} parameters", model.name, model.parameters));
  out.add("data", {{"spec", data.spec},
                   {"description", data.description},
                   {"train_samples", data.train_samples},
                   {"test_samples", data.test_samples}});
  out.line("data", data.description);
  if (!setup.images.empty()) {
    out.json["data"]["images"] = setup.images;
    out.line("", setup.images);
  }
  if (plan.is_of_training()) {
    const auto& run = setup.resolved;
    const auto precision = train::name(run.precision);
    out.add("training", {{"workers", run.workers},
                         {"threads_per_worker", run.threads},
                         {"local_batch", run.local_batch},
                         {"global_batch", run.global_batch},
                         {"precision", precision},
                         {"steps_per_epoch", run.steps_per_epoch},
                         {"learning_rate", run.rate.sentence}});
    const auto processes = plan.settings.planned_processes;
    out.line("workers", fmt::format("{} x {}{}, local batch {}, global batch {}, {}", run.workers,
                                    base::counted(run.threads, "thread"),
                                    processes > 1 ? fmt::format(" in {} processes", processes) : "",
                                    run.local_batch, run.global_batch, precision));
    out.line("rate", run.rate.sentence);
    out.line("steps", fmt::format("{} ({} an epoch)", run.end, run.steps_per_epoch));
  }
  write_memory(plan, setup, out);
}

void write_cells(const Plan& plan, Written& out) {
  constexpr int kFew = 1;
  Json all = Json::array();
  int skipped = 0;
  out.line("cells", fmt::format("{} to run, {}{} steps", plan.run,
                                plan.has_windows_by_time ? "at least " : "", plan.updates));
  for (const auto& cell : plan.cells) {
    if (cell.is_spare) continue;
    all.push_back({{"id", cell.id}, {"skipped", cell.skip.empty() ? Json() : Json(cell.skip)}});
    if (!cell.skip.empty() && ++skipped <= kFew) out.line("skipped", cell.id + ": " + cell.skip);
  }
  if (skipped > kFew) out.line("skipped", fmt::format("{} more cells; --json lists them", skipped - kFew));
  out.add("cells", std::move(all));
}

void write_time(const Plan& plan, Written& out) {
  const auto [from, some] = std::pair{plan.time_from(), plan.of_cells()};
  const auto seconds = [&](double factor) { return plan.known_s + factor * plan.calibrated_s; };
  const auto text_of = [&](double factor) { return base::rough_time(seconds(factor)); };
  Json json{{"seconds", plan.has_time() ? Json(seconds(1)) : Json()}, {"known_from", from}};
  auto text = fmt::format("{} {} (from {}", some.empty() ? "about" : "at least", text_of(1), from);
  if (plan.calibrated > 0) {
    json["low"] = seconds(kCalibrationLow);
    json["high"] = seconds(kCalibrationHigh);
    text = fmt::format("{} {} to {} (from {}", some.empty() ? "about" : "at least", text_of(kCalibrationLow),
                       text_of(kCalibrationHigh), from);
  }
  if (plan.has_time() && plan.repeats_s > 0) {
    json["repeats_s"] = plan.repeats_s;
    json["waits_s"] = plan.waits_s;
    text += fmt::format("; up to {} more, waits included, if other programs disturb what decides",
                        base::rough_time(plan.repeats_s + plan.waits_s));
  }
  if (!some.empty()) {
    json["of_cells"] = some;
    text += "; cells " + some;
  }
  out.add("time", std::move(json));
  out.line("time", plan.has_time() ? text + ")" : "not known: " + from);
}

void write_disk(const Plan& plan, const std::filesystem::path& directory, Written& out) {
  const auto files = files_of(plan, directory);
  out.add("files", files);
  for (const auto& file : files) out.line("writes", file);
  Json json = Json::object();
  std::string text;
  if (plan.is_of_training() && plan.largest) {
    const auto bytes = plan.largest->checkpoint_bytes;
    json["checkpoints_bytes"] = bytes;
    text = fmt::format("{:.1f} MB of checkpoints at the most; ", 1e-6 * static_cast<double>(bytes));
  }
  if (const auto free = base::free_bytes(directory)) {
    json["free_bytes"] = *free;
    text += fmt::format("{:.1f} GB are free", base::gigabytes(*free));
  } else {
    text += "the system does not report how much is free";
  }
  out.add("disk", std::move(json));
  out.line("disk", text);
}

Written written(const Plan& plan, const std::filesystem::path& directory) {
  const auto& settings = plan.settings;
  Written out{.json = {{"schema", "paceline-plan-1"}, {"command", command_name(settings.command)}}};
  write_settings(plan, out);
  if (plan.largest) write_setup(plan, *plan.largest, out);
  out.add("updates", plan.updates);
  if (plan.has_windows_by_time) out.add("updates_are", "the fewest: windows end by time");
  out.add("processes", settings.planned_processes);
  if (!plan.is_of_training()) write_cells(plan, out);
  write_time(plan, out);
  write_disk(plan, directory, out);
  out.text += fmt::format("nothing was {}written; the same command without --plan runs it\n",
                          plan.calibrated > 0 ? "" : "run or ");
  return out;
}

}  // namespace

std::vector<PlannedSetting> planned_settings(const Settings& settings) {
  std::vector<PlannedSetting> given, usual;
  for (const auto& option : options()) {
    if (!(option.commands & settings.command) || option.setting == "plan") continue;
    const auto value = option.get(settings);
    const auto found = std::ranges::find(settings.given, option.setting);
    if (found != settings.given.end())
      given.push_back(
          {std::string(option.name()), value,
           origin_of(settings.origins[static_cast<std::size_t>(found - settings.given.begin())])});
    else if (!value.empty())
      usual.push_back({std::string(option.name()), value, "default"});
  }
  given.insert(given.end(), usual.begin(), usual.end());
  return given;
}

train::Backend plan_backend(const Settings& settings, const comm::Emulation& emulation) {
  auto backend = cluster::make_backend(settings.train.device, settings.session, emulation);
  if (settings.planned_processes > 1) {
    auto& place = backend.place;
    place.processes = settings.planned_processes;
    place.hosts = settings.planned_nodes;
    place.neighbours = place.core_sharers =
        (settings.planned_processes + settings.planned_nodes - 1) / settings.planned_nodes;
  }
  return backend;
}

int show_plan(const Settings& settings, const std::vector<study::PlannedCell>& given,
              const train::Backend& backend, const std::filesystem::path& directory) {
  require_output_directory(directory);
  if (settings.command != kTrain) study::require_own_records(given, directory);
  const KnownTimes times({directory, "paceline-out"});
  Plan plan{.settings = settings, .cells = given};
  plan_cells(backend, times, plan);
  if (!plan.largest && !plan.excess.empty()) base::fail(ErrorKind::device, "{}", plan.excess);
  const auto out = written(plan, directory);
  if (settings.json)
    std::printf("%s\n", out.json.dump(2).c_str());
  else
    print(out.text);
  return 0;
}

int show_child_plan(const Settings& settings, int processes, int nodes) {
  const auto& child = settings.child;
  for (const auto& row : command_rows()) {
    if (!(row.command & kRuns) || child.front() != row.name) continue;
    auto parsed = parse(row.command, {child.begin() + 1, child.end()}).settings;
    parsed.plan = true;
    parsed.calibrate = settings.calibrate && parsed.calibrate;
    parsed.planned_processes = processes;
    parsed.planned_nodes = nodes;
    return row.run(parsed);
  }
  std::printf("%s trains nothing and has no plan\n", child.front().c_str());
  return 0;
}

}  // namespace paceline::cli
