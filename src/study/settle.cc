#include "study/settle.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>
#include <utility>

#include "analysis/compare/operating_point.h"
#include "analysis/compare/setup_groups.h"
#include "base/error.h"
#include "base/text.h"
#include "measure/disturbance.h"
#include "measure/setting.h"
#include "train/checkpoint/checkpoint.h"
#include "train/given/option_rows.h"
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
    train::refuse_options(
        "{} was measured {}, but here it is {}: give another --out, or remove that directory", path.string(),
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
         (record.precision.empty() || record.precision == train::name(setup.resolved.precision));
}

/// Whether a training that ends at `end` has nothing left to do after this checkpoint, or cannot read it.
bool is_of_no_use(const fs::path& checkpoint, std::int64_t end) {
  try {
    return train::read_checkpoint_info(checkpoint).updates >= end;
  } catch (const base::Error&) {
    return true;
  }
}

bool is_timed(const PlannedCell& cell) {
  return cell.training.empty() && cell.options.window_steps != 0 && !cell.is_of_collectives();
}

/// The text that repeats have in common: everything except the window, and the question for which they are
/// measured.
std::string set_up_of(const PlannedCell& cell) {
  const train::Options& options = cell.options;
  std::string key =
      fmt::format("{}|{}|{}|{}|{}", cell.kind, cell.variant, cell.local_batch(), cell.global_batch(),
                  options.placement == train::Placement::spread ? "spread" : "");
  for (const auto& [name, value] : train::settings(options))
    if (!measure::is_of_window(name) && !name.ends_with("-batch")) key += fmt::format("|{}={}", name, value);
  return key;
}

/// A set-up's spares, as indices of the list of cells, and how many of them were run.
struct Spares {
  std::vector<std::size_t> places;
  std::size_t used = 0;
  [[nodiscard]] bool any_left() const { return used < places.size(); }
};

/// What is planned and was measured, by the text of the set-up.
struct SetUps {
  std::map<std::string, Spares> spares;
  std::map<std::string, std::string> by_id;  ///< the set-up of each cell
  std::size_t used = 0;
};

SetUps set_ups_of(const std::vector<PlannedCell>& cells, std::span<const Record> records) {
  std::set<std::string> measured;
  for (const Record& record : records) measured.insert(record.id);
  SetUps set_ups;
  for (std::size_t place = 0; place < cells.size(); ++place) {
    const PlannedCell& cell = cells[place];
    if (!is_timed(cell) || !cell.skip.empty()) continue;
    const std::string key = set_up_of(cell);
    set_ups.by_id[cell.id] = key;
    Spares& spares = set_ups.spares[key];  // of no places where there are none
    if (!cell.is_spare) continue;
    spares.places.push_back(place);
    if (!measured.contains(cell.id)) continue;
    ++spares.used;
    ++set_ups.used;
  }
  return set_ups;
}

/// The cells that decide the answers about this choice and are not certainly undisturbed, the most useful
/// first; also undisturbed ones whose intervals leave open which is the best.
std::vector<const analysis::Cell*> deciding(const analysis::OperatingPoint& point) {
  std::vector<const analysis::Cell*> cells;
  const auto add = [&](const analysis::Cell* cell, bool is_wide = false) {
    const bool is_unsure = is_wide || cell->disturbance != measure::Disturbance::none;
    if (is_unsure && std::find(cells.begin(), cells.end(), cell) == cells.end()) cells.push_back(cell);
  };
  const analysis::Cell& best = *point.best();
  const bool is_wide = point.choice.standing == analysis::Standing::not_decided;
  const bool is_single = best.records.size() == 1 && !best.lost.empty();  // its other repeats were disturbed
  add(&best, is_wide || is_single);
  for (const analysis::Cell* cell : point.choice.overlap) add(cell, is_wide);
  for (const analysis::Cell* cell : point.choice.unsettled) add(cell);
  for (const analysis::Cell* cell : point.eligible)
    if (cell->workers == 1 && best.workers > 1 && cell->threads_per_worker == best.threads_per_worker &&
        (cell->local_batch == best.local_batch || cell->global_batch == best.global_batch))
      add(cell);
  return cells;
}

/// The repeats of a cell in which the run stood still, also those that were set aside. Each is measured
/// again.
std::vector<const Record*> still_repeats(const analysis::Cell& cell) {
  std::vector<const Record*> still;
  for (const auto* records : {&cell.records, &cell.lost})
    std::ranges::copy_if(*records, std::back_inserter(still),
                         [](const Record* record) { return measure::stood_still(*record); });
  return still;
}

/// The cells that decide, each with true, then the others.
std::vector<std::pair<const analysis::Cell*, bool>> candidates(
    const std::vector<const analysis::Cell*>& deciding, const std::vector<const analysis::Cell*>& all) {
  std::vector<std::pair<const analysis::Cell*, bool>> cells;
  for (const auto* cell : deciding) cells.emplace_back(cell, true);
  for (const auto* cell : all)
    if (std::ranges::find(deciding, cell) == deciding.end()) cells.emplace_back(cell, false);
  return cells;
}

std::string why_again(const analysis::Cell& cell) {
  for (const Record* record : cell.records)
    if (measure::disturbance_of(*record) == measure::Disturbance::disturbed)
      return measure::text_about_disturbance(*record);
  if (cell.disturbance == measure::Disturbance::none)
    return cell.records.size() == 1 ? "a single repeat was undisturbed"
                                    : "its interval is too wide to decide";
  return "its windows were too short to see other programs";
}

/// Describes one round of repeats to the user.
std::string sentence_on(const Repeats& repeats) {
  std::vector<std::string> kinds;
  const auto add = [&](std::ptrdiff_t number, const char* text) {
    if (number > 0) kinds.push_back(fmt::format("{} {}", number, text));
  };
  for (const auto& [disturbance, text] :
       {std::pair{measure::Disturbance::maybe, "too short to see other programs"},
        std::pair{measure::Disturbance::disturbed, "disturbed by other programs"},
        std::pair{measure::Disturbance::none, "with too little that is certain"}})
    add(std::ranges::count_if(repeats.chosen,
                              [&](const Repeat& one) { return one.was == disturbance && !one.stood_still; }),
        text);
  add(std::ranges::count(repeats.chosen, true, &Repeat::stood_still), "in which the run stood still");
  std::string text = fmt::format("measuring {} again: {}",
                                 base::counted(repeats.chosen.size(), "that decides", "that decide"),
                                 fmt::join(kinds, ", "));
  if (repeats.left_out > 0) text += fmt::format("; {} more stay as they are", repeats.left_out);
  return text;
}

/// Spares that an earlier, stopped study has measured.
std::vector<std::size_t> measured_before(const std::vector<PlannedCell>& cells, const Runner& runner) {
  std::vector<std::size_t> places;
  for (std::size_t place = 0; place < cells.size(); ++place) {
    if (runner.directory.empty() || !cells[place].is_spare) continue;
    // One that is damaged or of another version is measured again if it is needed.
    const auto record = readable(record_path(runner, cells[place].id));
    if (record && record->status == "complete") places.push_back(place);
  }
  return places;
}

}  // namespace

fs::path record_path(const Runner& runner, const std::string& id) {
  return runner.directory / "records" / (id + ".json");
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

std::map<std::string, Record> kept_records(const std::vector<PlannedCell>& cells, const Runner& runner) {
  std::map<std::string, Record> records;
  if (runner.directory.empty() || cells.empty()) return records;
  const auto here =
      train::machine_of(backend_for(runner, cells.front().options).place, runner.backend.libraries);
  std::map<fs::path, std::string> foreign;  // and when it was made; rungs of a search share a training
  const auto is_foreign = [&](const fs::path& path, const PlannedCell& cell, const Record& record) {
    require_same_settings(path, cell, record);
    return !is_of_here(record, here, train::inspect(cell.options, backend_for(runner, cell.options)));
  };
  for (const PlannedCell& cell : cells) {
    if (auto record = readable(record_path(runner, cell.id)); record && record->status == "complete") {
      if (is_foreign(record_path(runner, cell.id), cell, *record))
        foreign.emplace(record_path(runner, cell.id), record->created);
      else
        records.emplace(cell.id, std::move(*record));
    }
    const auto training = training_directory(runner, cell);
    if (training.empty() || train::checkpoints_in(training).empty()) continue;
    if (const auto begun = readable(training / "record.json"); begun && is_foreign(training, cell, *begun))
      foreign.emplace(training, begun->created);
  }
  if (foreign.empty()) return records;
  const auto earlier = runner.directory / kSetAside;
  fs::create_directories(earlier);
  for (const auto& [path, created] : foreign)
    fs::rename(path, earlier / fmt::format("{}-{}", created, path.filename().string()));
  return records;
}

void require_own_records(const std::vector<PlannedCell>& cells, const fs::path& directory) {
  for (const PlannedCell& cell : cells) {
    const auto path = directory / "records" / (cell.id + ".json");
    if (const auto record = readable(path); record && record->status == "complete")
      require_same_settings(path, cell, *record);
  }
}

bool can_go_on(const Runner& runner, const PlannedCell& cell) {
  const auto training = training_directory(runner, cell);
  if (training.empty()) return false;
  const auto record = readable(training / "record.json");
  auto checkpoints = train::checkpoints_in(training);
  // Killed between its last checkpoint and its record: the last epoch is trained again. Also, a search with
  // other rungs may have trained further than this cell does.
  if (record && !record->epochs.empty()) {
    const auto end = train::inspect(cell.options, backend_for(runner, cell.options)).resolved.end;
    if (record->epochs.back().updates >= end)
      std::erase_if(checkpoints,
                    [&](const fs::path& path) { return is_of_no_use(path, end) && fs::remove(path); });
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
      spare.id = cell.id.substr(0, cell.id.rfind("-r")) + "-spare";  // and "-spare2"
      spare.is_spare = true;
      spare.options.least_window_seconds = 0;
      if (spare.options.window_steps > 0) {
        // The seconds of a cell that ends by its steps are only its limit.
        const bool ends_by_time = spare.options.window_steps >= train::Options::kManySteps;
        spare.options.window_seconds =
            ends_by_time ? std::max(spare.options.window_seconds, kSpareSeconds) : kSpareSeconds;
        spare.options.window_steps = std::max(spare.options.window_steps, train::Options::kManySteps);
      }
    }
    PlannedCell& spare = spares[found->second];
    spare.repeat = std::max(spare.repeat, cell.repeat + 1);
  }
  const std::size_t set_ups = spares.size();
  // The probability that a spare runs, for the time left: on a quiet machine none does.
  constexpr double kChance = 0.1;
  for (PlannedCell& spare : spares) spare.chance = kChance;
  for (int number = 1; number < kSparesEach; ++number)
    for (std::size_t i = 0; i < set_ups; ++i) {
      PlannedCell more = spares[i];
      more.id += std::to_string(number + 1);
      more.repeat += number;
      spares.push_back(std::move(more));
    }
  return spares;
}

Repeats choose_repeats(const std::vector<PlannedCell>& cells, std::span<const Record> records,
                       std::size_t most_repeats) {
  const SetUps set_ups = set_ups_of(cells, records);
  const auto measured = analysis::make_cells(records);
  Repeats repeats;
  for (const analysis::CellGroup& subject : analysis::by_subject(measured)) {
    const auto point = analysis::operating_point(subject.cells);
    if (point.best() == nullptr || !point.best()->is_timed()) continue;
    for (const auto& [cell, decides] : candidates(deciding(point), subject.cells)) {
      const auto key = set_ups.by_id.find(cell->record().id);
      if (key == set_ups.by_id.end()) continue;  // of another list of cells
      // A whole epoch cannot be longer than it is.
      const Spares& own = set_ups.spares.at(key->second);
      const bool is_longer = own.any_left() && cells[own.places[own.used]].options.window_steps > 0;
      const auto still = still_repeats(*cell);
      const bool stood_still = still.size() > own.used;
      if (!decides && !stood_still) continue;
      const bool may_help =
          own.any_left() && (is_longer || stood_still || cell->disturbance != measure::Disturbance::maybe);
      if (may_help && set_ups.used + repeats.chosen.size() < most_repeats)
        repeats.chosen.push_back({own.places[own.used],
                                  stood_still ? measure::text_about_pause(*still.front()) : why_again(*cell),
                                  cell->disturbance, stood_still});
      else if (may_help)
        ++repeats.left_out;
    }
  }
  return repeats;
}

std::vector<Record> run_settled(const std::vector<PlannedCell>& cells, const Runner& runner) {
  std::vector<std::size_t> places;
  for (std::size_t place = 0; place < cells.size(); ++place)
    if (!cells[place].is_spare) places.push_back(place);
  std::vector<Record> records;
  std::vector<PlannedCell> noted = cells;
  const auto run = [&](std::span<const std::size_t> some) {
    auto more = run_subset(noted, {some.begin(), some.end()}, runner);
    std::move(more.begin(), more.end(), std::back_inserter(records));
  };
  run(places);
  if (const auto before = measured_before(cells, runner); !before.empty()) run(before);
  while (!was_stopped(records)) {
    const Repeats repeats = choose_repeats(cells, records, runner.most_repeats);
    if (repeats.chosen.empty()) break;
    places.clear();
    for (const Repeat& repeat : repeats.chosen) {
      places.push_back(repeat.place);
      noted[repeat.place].note = "repeated: " + repeat.why;
    }
    if (runner.chosen) runner.chosen(places, sentence_on(repeats));
    for (std::span<const std::size_t> left = places; !left.empty();) {
      if (runner.before_repeat) runner.before_repeat();
      // Stopped, all that are left are noted as not begun.
      const auto now = runner.stop.stop_requested() ? left : left.first(1);
      run(now);
      left = left.subspan(now.size());
    }
  }
  return records;
}

}  // namespace paceline::study
