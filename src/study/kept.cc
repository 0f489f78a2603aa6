#include "study/kept.h"

#include <fmt/format.h>

#include "base/error.h"
#include "train/checkpoint/checkpoint.h"
#include "train/given/recorded_settings.h"
#include "train/record/machine.h"
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

}  // namespace paceline::study
