#include "study/settle.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "measure/disturbance.h"
#include "measure/setting.h"
#include "measure/statistics.h"
#include "train/checkpoint/checkpoint.h"
#include "train/given/names.h"
#include "train/record/run_record.h"
#include "train/run.h"

namespace paceline::study {
namespace {

namespace fs = std::filesystem;
using measure::Record;

/// The record in `path`; nullopt if there is no file, or if it is damaged or of another version.
std::optional<Record> readable(const fs::path& path) {
  if (!fs::exists(path)) return std::nullopt;
  try {
    return measure::read_record(path);
  } catch (const base::Error&) {
    return std::nullopt;
  }
}

void require_same_settings(const fs::path& path, const PlannedCell& cell, const Record& record) {
  for (const auto& [name, then, now, update] :
       train::differences(record.settings, train::settings(cell.options)))
    base::fail(base::ErrorKind::usage,
               "{} was measured {}, but here it is {}: give another --out, or remove that directory",
               path.string(),
               then ? fmt::format("with --{} {}", name, *then) : fmt::format("without --{}", name),
               now.value_or("not given"));
}

/// Whether a record with the same settings comes from this program, this machine and the same model and data.
/// Only then may its figures be shown beside new ones.
bool is_of_here(const Record& record, const measure::Environment& here, const train::Setup& setup) {
  const auto& there = record.environment;
  return there.host == here.host && there.cpu == here.cpu && there.cores == here.cores &&
         there.build == here.build && there.version == here.version && there.libraries == here.libraries &&
         record.model.parameters == setup.model.parameters &&
         record.model.training_flops == setup.model.training_flops &&
         record.data.train_samples == setup.data.train_samples &&
         record.data.test_samples == setup.data.test_samples &&
         // --precision auto takes another one if the processor's units have changed since. Collectives have
         // none.
         (record.precision.empty() || record.precision == setup.precision);
}

/// Whether a training that ends at `end` has nothing left to do after this checkpoint, or cannot read it.
bool is_of_no_use(const fs::path& checkpoint, std::int64_t end) {
  try {
    return train::read_checkpoint_info(checkpoint).updates >= end;
  } catch (const base::Error&) {
    return true;
  }
}

/// Removes such checkpoints from the disk and from the list.
void remove_useless(std::vector<fs::path>& checkpoints, std::int64_t end) {
  std::erase_if(checkpoints,
                [&](const fs::path& path) { return is_of_no_use(path, end) && fs::remove(path); });
}

/// More steps than fit into a spare's time, so that its window ends by time.
constexpr std::int64_t kManySteps = 20'000;

bool is_timed(const PlannedCell& cell) {
  return cell.training.empty() && cell.options.window_steps != 0 && !cell.is_of_collectives();
}

/// The text that repeats have in common: everything except the window, and the question for which they are
/// measured.
std::string set_up_of(const PlannedCell& cell) {
  const train::Options& options = cell.options;
  const auto local = options.local_batch > 0 ? options.local_batch : options.global_batch / options.workers;
  const auto global = options.global_batch > 0 ? options.global_batch : local * options.workers;
  std::string key = fmt::format("{}|{}|{}|{}|{}", cell.kind, cell.variant, local, global,
                                options.placement == train::Placement::spread ? "spread" : "");
  for (const auto& [name, value] : train::settings(options))
    if (!measure::is_of_window(name) && !name.ends_with("-batch")) key += fmt::format("|{}={}", name, value);
  return key;
}

/// "scale-weak-w2-b32-r0" -> "scale-weak-w2-b32-spare"
std::string id_of_spare(const std::string& id) { return id.substr(0, id.rfind("-r")) + "-spare"; }

/// A set-up and its measurements.
struct SetUp {
  std::size_t spare = 0;  ///< index of its spare
  bool has_spare = false, may_be_longer = false;
  bool is_spare_used = false;
  bool is_oversubscribed = false;
  /// Measured time for which the load by other programs is known, and unknown.
  double known_s = 0, unknown_s = 0;
  std::vector<double> quiet, all;  ///< seconds of steps; `quiet`: of repeats that were not disturbed
  const Record* worst = nullptr;   ///< the repeat that was disturbed most
  double global_batch = 0;

  [[nodiscard]] double images_per_s() const {
    const auto& steps = quiet.empty() ? all : quiet;
    return steps.empty() ? 0 : global_batch / measure::quantile(steps, 0.5);
  }
  [[nodiscard]] bool can_be_repeated() const { return has_spare && !is_spare_used; }
};

void add(SetUp& set_up, const Record& record) {
  set_up.is_oversubscribed = set_up.is_oversubscribed || record.oversubscribed;
  if (record.status != "complete" || record.ranks.empty()) return;
  const auto& steps = record.ranks.front().step_s;  // all ranks end a step at the same time
  set_up.global_batch = static_cast<double>(record.global_batch);
  set_up.all.insert(set_up.all.end(), steps.begin(), steps.end());
  (record.window.others_cores ? set_up.known_s : set_up.unknown_s) += record.window.wall_s;
  if (!measure::is_disturbed(record)) {
    set_up.quiet.insert(set_up.quiet.end(), steps.begin(), steps.end());
    return;
  }
  const bool is_worst = set_up.worst == nullptr || record.window.others_cores.value_or(0) >
                                                       set_up.worst->window.others_cores.value_or(0);
  if (is_worst) set_up.worst = &record;
}

/// The set-ups in the order of `cells`.
std::vector<SetUp> set_ups_of(const std::vector<PlannedCell>& cells, std::span<const Record> records) {
  std::map<std::string, const Record*> by_id;
  for (const Record& record : records) by_id[record.id] = &record;
  std::map<std::string, std::size_t> by_key;
  std::vector<SetUp> set_ups;
  for (std::size_t place = 0; place < cells.size(); ++place) {
    const PlannedCell& cell = cells[place];
    if (!is_timed(cell) || !cell.skip.empty()) continue;
    const auto [found, is_new] = by_key.try_emplace(set_up_of(cell), set_ups.size());
    if (is_new) set_ups.emplace_back();
    SetUp& set_up = set_ups[found->second];
    const auto record = by_id.find(cell.id);
    if (record != by_id.end()) add(set_up, *record->second);
    if (!cell.is_spare) continue;
    set_up.spare = place;
    set_up.has_spare = true;
    set_up.may_be_longer = cell.options.window_steps > 0;
    set_up.is_spare_used = record != by_id.end();
  }
  return set_ups;
}

/// The fastest set-ups that may be recommended.
std::vector<const SetUp*> fastest(const std::vector<const SetUp*>& by_rate) {
  std::vector<const SetUp*> eligible;
  for (const SetUp* set_up : by_rate)
    if (eligible.size() < kFastest && !set_up->is_oversubscribed && !set_up->quiet.empty())
      eligible.push_back(set_up);
  return eligible;
}

/// Describes one round of repeats to the user.
std::string sentence_on(const Repeats& repeats) {
  const auto disturbed = std::count_if(repeats.chosen.begin(), repeats.chosen.end(),
                                       [](const Repeat& repeat) { return repeat.is_disturbed; });
  const auto short_ones = static_cast<std::ptrdiff_t>(repeats.chosen.size()) - disturbed;
  std::string text = "once more: ";
  if (short_ones > 0)
    text +=
        fmt::format("{} of the fastest, whose windows were too short to detect other programs", short_ones);
  if (disturbed > 0)
    text += fmt::format("{}{} that other programs disturbed", short_ones > 0 ? "; " : "", disturbed);
  if (repeats.left_out > 0)
    text += fmt::format("; {} more were disturbed and are not repeated, since at most {} are",
                        repeats.left_out, kMostRepeats);
  return text;
}

/// Spares that an earlier, stopped study has measured.
std::vector<std::size_t> measured_before(const std::vector<PlannedCell>& cells, const Runner& runner) {
  std::vector<std::size_t> places;
  for (std::size_t place = 0; place < cells.size(); ++place) {
    const auto path = record_path(runner, cells[place]);
    if (runner.directory.empty() || !cells[place].is_spare || !std::filesystem::exists(path)) continue;
    try {
      if (measure::read_record(path).status == "complete") places.push_back(place);
    } catch (const base::Error&) {
      // Damaged or of another version: measured again if it is needed.
    }
  }
  return places;
}

}  // namespace

fs::path record_path(const Runner& runner, const PlannedCell& cell) {
  return runner.directory / "records" / (cell.id + ".json");
}

train::Backend backend_for(const Runner& runner, const train::Options& options) {
  auto backend = runner.together ? runner.together->backend(options) : runner.backend;
  backend.peak = runner.backend.peak;
  return backend;
}

fs::path training_directory(const Runner& runner, const PlannedCell& cell) {
  if (runner.directory.empty() || cell.training.empty()) return {};
  return runner.directory / "trainings" / cell.training;
}

Kept::Kept(const std::vector<PlannedCell>& cells, const Runner& runner) {
  if (runner.directory.empty() || cells.empty()) return;
  const auto here =
      train::machine_of(backend_for(runner, cells.front().options).place, runner.backend.libraries);
  struct Foreign {
    fs::path path;
    std::string created;
  };
  std::vector<Foreign> foreign;
  const auto is_foreign = [&](const fs::path& path, const PlannedCell& cell, const Record& record) {
    require_same_settings(path, cell, record);
    return !is_of_here(record, here, train::inspect(cell.options, backend_for(runner, cell.options)));
  };
  for (const PlannedCell& cell : cells) {
    if (auto record = readable(record_path(runner, cell)); record && record->status == "complete") {
      if (is_foreign(record_path(runner, cell), cell, *record))
        foreign.push_back({record_path(runner, cell), record->created});
      else
        records_.emplace(cell.id, std::move(*record));
    }
    const auto training = training_directory(runner, cell);
    if (training.empty() || train::checkpoints_in(training).empty()) continue;
    if (const auto begun = readable(training / "record.json"); begun && is_foreign(training, cell, *begun))
      foreign.push_back({training, begun->created});
  }
  if (foreign.empty()) return;
  const auto earlier = runner.directory / kSetAside;
  fs::create_directories(earlier);
  for (const auto& [path, created] : foreign)
    fs::rename(path, earlier / fmt::format("{}-{}", created, path.filename().string()));
}

std::optional<Record> Kept::take(const std::string& id) {
  auto node = records_.extract(id);
  return node.empty() ? std::nullopt : std::optional<Record>(std::move(node.mapped()));
}

bool can_go_on(const Runner& runner, const PlannedCell& cell) {
  const auto training = training_directory(runner, cell);
  if (training.empty()) return false;
  const auto record = readable(training / "record.json");
  auto checkpoints = train::checkpoints_in(training);
  // Killed between its last checkpoint and its record: the last epoch is trained again. Also, a search with
  // other rungs may have trained further than this cell does.
  if (record && !record->epochs.empty()) {
    const auto end = train::inspect(cell.options, backend_for(runner, cell.options)).updates;
    if (record->epochs.back().updates >= end) remove_useless(checkpoints, end);
  }
  if (record && !checkpoints.empty()) return true;
  fs::remove_all(training);
  return false;
}

std::vector<PlannedCell> spare_cells(const std::vector<PlannedCell>& cells) {
  std::vector<PlannedCell> spares;
  std::map<std::string, std::size_t> by_key;
  for (const PlannedCell& cell : cells) {
    if (!is_timed(cell) || !cell.skip.empty()) continue;
    const auto [found, is_new] = by_key.try_emplace(set_up_of(cell), spares.size());
    if (is_new) {
      PlannedCell& spare = spares.emplace_back(cell);
      spare.id = id_of_spare(cell.id);
      spare.is_spare = true;
      if (spare.options.window_steps > 0) {
        spare.options.window_steps = std::max(spare.options.window_steps, kManySteps);
        spare.options.window_seconds = std::max(spare.options.window_seconds, kSpareSeconds);
      }
    }
    PlannedCell& spare = spares[found->second];
    spare.repeat = std::max(spare.repeat, cell.repeat + 1);
  }
  for (PlannedCell& spare : spares)
    spare.chance = std::min(1.0, static_cast<double>(kFastest) / static_cast<double>(spares.size()));
  return spares;
}

Repeats choose_repeats(const std::vector<PlannedCell>& cells, std::span<const Record> records) {
  const auto set_ups = set_ups_of(cells, records);
  std::vector<const SetUp*> by_rate;
  std::size_t used = 0;
  for (const SetUp& set_up : set_ups) {
    used += set_up.is_spare_used ? 1 : 0;
    if (!set_up.all.empty()) by_rate.push_back(&set_up);
  }
  std::stable_sort(by_rate.begin(), by_rate.end(), [](const SetUp* a, const SetUp* b) {
    return std::tuple(a->is_oversubscribed, -a->images_per_s()) <
           std::tuple(b->is_oversubscribed, -b->images_per_s());
  });
  Repeats repeats;
  std::set<const SetUp*> taken;
  const auto take = [&](const SetUp* set_up, std::string why, bool is_disturbed) {
    if (!set_up->can_be_repeated() || !taken.insert(set_up).second) return;
    if (used + repeats.chosen.size() < kMostRepeats)
      repeats.chosen.push_back({set_up->spare, std::move(why), is_disturbed});
    else
      ++repeats.left_out;
  };
  for (const SetUp* set_up : fastest(by_rate))
    if (set_up->may_be_longer && set_up->worst == nullptr && set_up->unknown_s >= set_up->known_s)
      take(set_up,
           fmt::format("one of the {} fastest, measured in windows too short to detect other programs",
                       kFastest),
           false);
  for (const SetUp* set_up : by_rate)
    if (set_up->worst != nullptr) take(set_up, measure::disturbance(*set_up->worst), true);
  return repeats;
}

std::vector<Record> run_settled(const std::vector<PlannedCell>& cells, const Runner& runner) {
  std::vector<std::size_t> places;
  for (std::size_t place = 0; place < cells.size(); ++place)
    if (!cells[place].is_spare) places.push_back(place);
  std::vector<Record> records;
  std::vector<PlannedCell> noted = cells;
  const auto run = [&](const std::vector<std::size_t>& some) {
    auto more = run_subset(noted, some, runner);
    std::move(more.begin(), more.end(), std::back_inserter(records));
  };
  run(places);
  if (const auto before = measured_before(cells, runner); !before.empty()) run(before);
  while (!was_stopped(records)) {
    const Repeats repeats = choose_repeats(cells, records);
    if (repeats.chosen.empty()) break;
    places.clear();
    for (const Repeat& repeat : repeats.chosen) {
      places.push_back(repeat.place);
      noted[repeat.place].note = "repeated: " + repeat.why;
    }
    if (runner.chosen) runner.chosen(places, sentence_on(repeats));
    run(places);
  }
  return records;
}

}  // namespace paceline::study
