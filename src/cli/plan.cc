#include "cli/plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "base/topology.h"
#include "cli/commands/commands.h"
#include "cli/options/arguments.h"
#include "cli/plan_time.h"
#include "cli/quiet_moment.h"
#include "cli/reports.h"
#include "cli/screen/screen.h"
#include "cluster/make_backend.h"
#include "study/settle.h"
#include "train/given/names.h"
#include "train/run.h"

namespace paceline::cli {
namespace {

using Json = nlohmann::ordered_json;

/// "recipes/mnist.toml:7" from "recipes/mnist.toml:7: lr"; "typed" for an option that begins with dashes.
std::string origin_of(const std::string& where) {
  if (where.starts_with("-")) return "typed";
  return where.substr(0, where.rfind(": "));
}

/// Totals over the cells of a plan.
struct PlanTotal {
  std::size_t run = 0;                  ///< cells that would be run
  std::size_t known = 0;                ///< of these, cells whose time an older record gives
  double seconds = 0;                   ///< of these
  double calibrated_s = 0;              ///< of cells whose time was estimated from a calibration
  std::size_t calibrated = 0;           ///< number of these cells
  std::string calibration;              ///< what was timed for that
  double repeats_s = 0;                 ///< the most that repeats may take (study/settle.h)
  double waits_s = 0;                   ///< the most that is waited for a quiet moment before them
  std::int64_t updates = 0;             ///< of all cells that are run
  bool has_windows_by_time = false;     ///< updates are the fewest
  std::string from;                     ///< the record that gives the first known time
  std::optional<train::Setup> largest;  ///< the cell with the largest memory plan
  std::string largest_id;
  std::string excess;  ///< of the first cell that does not fit
};

/// Plans cells with equal options once, since repeats have the same memory and time.
class CellPlans {
 public:
  struct Plan {
    train::Setup setup;
    std::optional<KnownTime> time;
  };

  /// `is_training`: the only cell is a training, which opens more than a cell of a study.
  CellPlans(const train::Backend& backend, const KnownTimes& times, bool is_training)
      : backend_(backend), times_(times), is_training_(is_training) {}

  /// Errors   those of train::inspect(), of a training those of train::rehearse()
  const Plan& of(const train::Options& options) {
    auto key = train::settings(options);
    key["workers"] = std::to_string(options.workers);  // not in the settings of every record
    key.erase("seed");
    const auto found = plans_.find(key);
    if (found != plans_.end()) return found->second;
    auto setup = is_training_ ? train::rehearse(options, backend_) : train::inspect(options, backend_);
    auto time = times_.of(options, setup);
    return plans_.emplace(std::move(key), Plan{std::move(setup), std::move(time)}).first->second;
  }

 private:
  const train::Backend& backend_;
  const KnownTimes& times_;
  const bool is_training_;
  std::map<std::map<std::string, std::string>, Plan> plans_;
};

void add_plan(const CellPlans::Plan& plan, const study::PlannedCell& cell, PlanTotal& total) {
  const auto& [setup, time] = plan;
  const auto fewest = fewest_steps(cell.options);
  total.updates += fewest.value_or(setup.updates);
  total.has_windows_by_time |= fewest.has_value();
  if (time) {
    ++total.known;
    total.seconds += time->seconds;
    if (total.from.empty()) total.from = time->from;
  }
  if (!setup.excess.empty()) {
    if (total.excess.empty()) total.excess = setup.excess;
  } else if (!total.largest || setup.memory.plan_bytes > total.largest->memory.plan_bytes) {
    total.largest = setup;
    total.largest_id = cell.id;
  }
}

/// Plans all cells. If there are several, impossible ones get their reason as `skip`, since the study will
/// leave them out.
///
/// Errors   those of train::inspect() for a single cell, or if no cell is possible
PlanTotal plan_cells(std::vector<study::PlannedCell>& cells, const train::Backend& backend,
                     const KnownTimes& times, const Settings& settings) {
  CellPlans plans(backend, times, settings.command == kTrain);
  PlanTotal total;
  std::optional<base::Error> impossible;
  std::vector<std::size_t> unknown;  // cells whose time no record tells
  for (auto& cell : cells) {
    if (!cell.skip.empty() || cell.is_spare) continue;
    ++total.run;
    if (cell.is_of_collectives()) {
      total.seconds += cell.collectives_s;
      ++total.known;
      continue;
    }
    try {
      const auto& plan = plans.of(cell.options);
      add_plan(plan, cell, total);
      if (!plan.time && plan.setup.excess.empty())
        unknown.push_back(static_cast<std::size_t>(&cell - cells.data()));
    } catch (const base::Error& error) {
      if (cells.size() == 1 || error.kind() != base::ErrorKind::usage) throw;
      if (!impossible) impossible = error;
      cell.skip = error.what();
      --total.run;
    }
  }
  if (total.run == 0 && impossible) throw *impossible;
  std::vector<double> repeats;
  for (const auto& cell : cells) {
    if (!cell.is_spare || !cell.skip.empty()) continue;
    try {
      const auto& plan = plans.of(cell.options);
      if (plan.time)
        repeats.push_back(plan.time->seconds);
      else if (plan.setup.excess.empty())
        unknown.push_back(static_cast<std::size_t>(&cell - cells.data()));
    } catch (const base::Error&) {
      continue;  // the cell is skipped
    }
  }
  if (settings.calibrate && !unknown.empty()) {
    const auto some = study::subset(cells, unknown);
    auto found = calibrate(some, settings.planned_nodes * base::usable_cores());
    total.calibration = std::move(found.text);
    for (std::size_t i = 0; i < some.size(); ++i) {
      if (!found.seconds[i]) continue;
      if (some[i].is_spare) {
        repeats.push_back(*found.seconds[i]);
        continue;
      }
      ++total.calibrated;
      total.calibrated_s += some[i].chance * *found.seconds[i];
    }
  }
  std::ranges::sort(repeats, std::greater());
  repeats.resize(std::min(repeats.size(), settings.study.most_repeats));
  for (const double seconds : repeats) total.repeats_s += seconds;
  total.waits_s = kMostWaitsOfRepeat_s * static_cast<double>(settings.study.most_repeats);
  return total;
}

double gigabytes_of(std::int64_t bytes) { return static_cast<double>(bytes) / 1e9; }

std::string duration(double seconds) {
  if (seconds < 90) return fmt::format("{:.0f} s", seconds);
  if (seconds < 5400) return fmt::format("{:.0f} min", seconds / 60);
  return fmt::format("{:.1f} h", seconds / 3600);
}

Json files_of(const Settings& settings, const std::filesystem::path& directory, const PlanTotal& total) {
  Json files = Json::array();
  const auto add = [&](const std::string& name) { files.push_back((directory / name).string()); };
  if (settings.command == kTrain) {
    for (const char* name : {"record.json", "events.jsonl"}) add(name);
    if (total.largest && total.largest->checkpoint_files > 0) add("checkpoint-*.safetensors");
    if (settings.tensorboard) add("tensorboard/");
  } else {
    for (const char* name : {"records/", "events.jsonl", "report.html", "report.md", "report.json", "csv/"})
      add(name);
  }
  if (!settings.train.timeline.empty()) files.push_back(settings.train.timeline.string());
  return files;
}

Json memory_json(const train::Setup& setup, const std::string& id) {
  Json memory{{"bytes", setup.memory.plan_bytes}, {"available_bytes", setup.memory.available_bytes}};
  if (!id.empty()) memory["cell"] = id;
  Json lines = Json::object();
  for (const auto& line : setup.plan.lines) {
    const auto name = (line.place == graph::MemoryPlan::Place::device ? "device: " : "") + line.purpose;
    lines[name] = lines.value(name, std::int64_t{0}) + line.bytes;
  }
  memory["lines"] = lines;
  if (setup.memory.device) {
    memory["device_bytes"] = setup.memory.device->plan_bytes;
    memory["device_available_bytes"] = setup.memory.device->available_bytes;
  }
  return memory;
}

Json time_json(const PlanTotal& total) {
  if (total.known == 0 && total.calibrated == 0)
    return {{"seconds", nullptr},
            {"known_from",
             "no record of the same set-up is in the output directory or paceline-out; a short run "
             "(--steps 20) leaves one"}};
  Json time{{"seconds", total.seconds + total.calibrated_s},
            {"known_from", total.calibrated > 0 ? total.calibration
                           : total.from.empty() ? "its own option"
                                                : total.from}};
  if (total.calibrated > 0) {
    time["low"] = total.seconds + kCalibrationLow * total.calibrated_s;
    time["high"] = total.seconds + kCalibrationHigh * total.calibrated_s;
  }
  if (total.repeats_s > 0) {
    time["repeats_s"] = total.repeats_s;
    time["waits_s"] = total.waits_s;
  }
  const auto told = total.known + total.calibrated;
  if (told < total.run)
    time["of_cells"] = fmt::format("{} of {}; no record has the time of the others", told, total.run);
  return time;
}

std::string time_text(const Json& time) {
  const auto from = time["known_from"].get<std::string>();
  if (time["seconds"].is_null()) return "not known: " + from;
  const bool is_whole = !time.contains("of_cells");
  const auto seconds = time.contains("low") ? fmt::format("{} to {}", duration(time["low"].get<double>()),
                                                          duration(time["high"].get<double>()))
                                            : duration(time["seconds"].get<double>());
  auto text = fmt::format("{} {} (from {}", is_whole ? "about" : "at least", seconds, from);
  if (time.contains("repeats_s"))
    text += fmt::format("; up to {} more, waits included, if other programs disturb what decides",
                        duration(time["repeats_s"].get<double>() + time["waits_s"].get<double>()));
  if (!is_whole) text += "; cells " + time["of_cells"].get<std::string>();
  return text + ")";
}

Json plan_json(const Settings& settings, const PlanTotal& total, const std::vector<study::PlannedCell>& cells,
               const std::filesystem::path& directory) {
  Json plan{{"schema", "paceline-plan-1"}, {"command", command_name(settings.command)}};
  plan["settings"] = Json::array();
  for (const auto& one : planned_settings(settings))
    plan["settings"].push_back({{"name", one.name}, {"value", one.value}, {"origin", one.origin}});
  plan["notes"] = settings.notes;
  if (total.largest) {
    const auto& setup = *total.largest;
    plan["model"] = {{"name", setup.model.name}, {"parameters", setup.model.parameters}};
    plan["data"] = {{"spec", setup.data.spec},
                    {"description", setup.data.description},
                    {"train_samples", setup.data.train_samples},
                    {"test_samples", setup.data.test_samples}};
    if (!setup.images.empty()) plan["data"]["images"] = setup.images;
    if (settings.command == kTrain)
      plan["training"] = {{"workers", setup.workers},
                          {"threads_per_worker", setup.threads},
                          {"local_batch", setup.local_batch},
                          {"global_batch", setup.global_batch},
                          {"precision", setup.precision},
                          {"steps_per_epoch", setup.steps_per_epoch},
                          {"learning_rate", setup.learning_rate}};
    plan["memory"] = memory_json(setup, settings.command == kTrain ? "" : total.largest_id);
  }
  plan["updates"] = total.updates;
  if (total.has_windows_by_time) plan["updates_are"] = "the fewest: windows end by time";
  plan["processes"] = settings.planned_processes;
  if (settings.command != kTrain) {
    plan["cells"] = Json::array();
    for (const auto& cell : cells)
      if (!cell.is_spare)
        plan["cells"].push_back({{"id", cell.id}, {"skipped", cell.skip.empty() ? Json() : Json(cell.skip)}});
  }
  plan["time"] = time_json(total);
  plan["files"] = files_of(settings, directory, total);
  Json disk = Json::object();
  if (settings.command == kTrain && total.largest)
    disk["checkpoints_bytes"] = total.largest->checkpoint_bytes * total.largest->checkpoint_files;
  if (const auto free = base::free_bytes(directory)) disk["free_bytes"] = *free;
  plan["disk"] = disk;
  return plan;
}

void print_settings(const Settings& settings) {
  std::string text = "settings\n";
  int usual = 0;
  for (const auto& one : planned_settings(settings))
    if (one.origin == "default")
      ++usual;
    else
      text += fmt::format("  {:<20} {:<28} {}\n", one.name, one.value, one.origin);
  print(text + fmt::format("  {} more have their defaults; --json lists them with all cells\n", usual));
}

void print_plan(const Settings& settings, const PlanTotal& total, const Json& plan) {
  const auto line = [](const char* name, const std::string& text) {
    print(fmt::format("{:<9} {}\n", name, text));
  };
  print_settings(settings);
  for (const auto& note : settings.notes) line("note", note);
  if (total.largest) {
    const auto& setup = *total.largest;
    line("model", fmt::format("{}, {} parameters", setup.model.name, setup.model.parameters));
    line("data", setup.data.description);
    if (!setup.images.empty()) line("", setup.images);
    if (settings.command == kTrain) {
      line("workers", fmt::format("{} x {} thread{}{}, local batch {}, global batch {}, {}", setup.workers,
                                  setup.threads, setup.threads == 1 ? "" : "s",
                                  settings.planned_processes > 1
                                      ? fmt::format(" in {} processes", settings.planned_processes)
                                      : "",
                                  setup.local_batch, setup.global_batch, setup.precision));
      line("rate", setup.learning_rate);
      line("steps", fmt::format("{} ({} an epoch)", setup.updates, setup.steps_per_epoch));
    }
    line("memory",
         fmt::format(
             "{:.2f} GB of {:.2f} GB{}{}", gigabytes_of(setup.memory.plan_bytes),
             gigabytes_of(setup.memory.available_bytes),
             settings.planned_processes > 1 ? ", of each process" : "",
             settings.command == kTrain ? "" : fmt::format(" (the largest cell, {})", total.largest_id)));
    if (setup.memory.device)
      line("device", fmt::format("{:.2f} GB of {:.2f} GB", gigabytes_of(setup.memory.device->plan_bytes),
                                 gigabytes_of(setup.memory.device->available_bytes)));
  }
  if (settings.command != kTrain) {
    line("cells", fmt::format("{} to run, {}{} steps", total.run,
                              total.has_windows_by_time ? "at least " : "", total.updates));
    constexpr int kFew = 1;
    int skipped = 0;
    for (const auto& cell : plan["cells"])
      if (!cell["skipped"].is_null() && ++skipped <= kFew)
        line("skipped",
             fmt::format("{}: {}", cell["id"].get<std::string>(), cell["skipped"].get<std::string>()));
    if (skipped > kFew) line("skipped", fmt::format("{} more cells; --json lists them", skipped - kFew));
  }
  line("time", time_text(plan["time"]));
  for (const auto& file : plan["files"]) line("writes", file.get<std::string>());
  const auto& disk = plan["disk"];
  const auto free =
      disk.contains("free_bytes")
          ? fmt::format("{:.1f} GB are free", gigabytes_of(disk["free_bytes"].get<std::int64_t>()))
          : std::string("the system does not report how much is free");
  line("disk",
       disk.contains("checkpoints_bytes")
           ? fmt::format("{:.1f} MB of checkpoints at the most; {}",
                         1e-6 * static_cast<double>(disk["checkpoints_bytes"].get<std::int64_t>()), free)
           : free);
  std::printf("nothing was %swritten; the same command without --plan runs it\n",
              total.calibrated > 0 ? "" : "run or ");
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
  auto cells = given;
  const auto total = plan_cells(cells, backend, times, settings);
  if (!total.largest && !total.excess.empty()) base::fail(base::ErrorKind::device, "{}", total.excess);
  const auto plan = plan_json(settings, total, cells, directory);
  if (settings.json)
    std::printf("%s\n", plan.dump(2).c_str());
  else
    print_plan(settings, total, plan);
  return 0;
}

int show_child_plan(const Settings& settings, int processes, int nodes) {
  const auto& child = settings.child;
  constexpr std::pair<Command, int (*)(const Settings&)> kPlanned[] = {
      {kTrain, train_command},       {kSweep, sweep_command},   {kScale, scale_command},
      {kConverge, converge_command}, {kSearch, search_command}, {kStudy, study_command}};
  for (const auto& [command, run] : kPlanned) {
    if (child.front() != command_name(command)) continue;
    auto parsed = parse(command, {child.begin() + 1, child.end()}).settings;
    parsed.plan = true;
    parsed.calibrate = settings.calibrate && parsed.calibrate;
    parsed.planned_processes = processes;
    parsed.planned_nodes = nodes;
    return run(parsed);
  }
  std::printf("%s trains nothing and has no plan\n", child.front().c_str());
  return 0;
}

}  // namespace paceline::cli
