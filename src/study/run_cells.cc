/// Running cells in order, reusing what an earlier, stopped study has already measured.

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <optional>

#include "base/clock.h"
#include "base/error.h"
#include "study/study.h"
#include "train/memory.h"

namespace paceline::study {
namespace {

using measure::Record;

std::filesystem::path record_path(const Runner& runner, const Cell& cell) {
  return runner.directory / "records" / (cell.id + ".json");
}

train::Backend backend_for(const Runner& runner, const train::Options& options) {
  return runner.together ? runner.together->backend(options) : runner.backend;
}

/// The complete record that stands under the cell's name, if there is one. A damaged one is measured anew.
std::optional<Record> complete_record(const Runner& runner, const Cell& cell) {
  const auto path = record_path(runner, cell);
  if (runner.directory.empty() || !std::filesystem::exists(path)) return std::nullopt;
  try {
    Record record = measure::read_record(path);
    if (record.status == "complete") return record;
  } catch (const base::Error&) {
    // damaged or of another version
  }
  return std::nullopt;
}

/// Records of other settings answer another question, and hours of somebody's measuring: never overwritten.
void require_same_settings(const Runner& runner, const Cell& cell, const Record& record) {
  const auto wanted = train::settings(cell.options);
  for (const auto& [name, value] : wanted) {
    const auto there = record.settings.find(name);
    if (there != record.settings.end() && there->second == value) continue;
    base::fail(
        base::ErrorKind::usage,
        "{} was measured with --{} {}, and here it is {}: give another --out, or remove that directory",
        record_path(runner, cell).string(), name, there == record.settings.end() ? "unknown" : there->second,
        value);
  }
}

/// Whether a record of the same settings is of this program, this machine and the same model and data: only
/// then may its figures stand beside new ones.
bool is_of_here(const Record& record, const measure::Environment& here, const train::Setup& setup) {
  const auto& there = record.environment;
  return there.host == here.host && there.cpu == here.cpu && there.cores == here.cores &&
         there.build == here.build && there.version == here.version && there.libraries == here.libraries &&
         record.model.parameters == setup.model.parameters &&
         record.model.training_flops == setup.model.training_flops &&
         record.data.train_samples == setup.data.train_samples &&
         record.data.test_samples == setup.data.test_samples;
}

/// What an earlier, stopped study has already measured, by the cells' ids.
class Kept {
 public:
  Kept(const std::vector<Cell>& cells, const Runner& runner) {
    const auto here = measure::environment(runner.backend.libraries);
    for (const Cell& cell : cells) {
      auto record = complete_record(runner, cell);
      if (!record) continue;
      require_same_settings(runner, cell, *record);
      if (is_of_here(*record, here, train::inspect(cell.options, backend_for(runner, cell.options))))
        records_.emplace(cell.id, std::move(*record));
      else
        foreign_.push_back(record_path(runner, cell));
    }
    if (foreign_.empty()) return;
    const auto earlier = runner.directory / "earlier";
    std::filesystem::create_directories(earlier);
    for (const auto& path : foreign_)
      std::filesystem::rename(
          path, earlier / fmt::format("{}-{}", measure::read_record(path).created, path.filename().string()));
  }

  /// The record, once; it is moved out.
  std::optional<Record> take(const std::string& id) {
    auto node = records_.extract(id);
    return node.empty() ? std::nullopt : std::optional<Record>(std::move(node.mapped()));
  }

 private:
  std::map<std::string, Record> records_;
  std::vector<std::filesystem::path> foreign_;
};

void label(Record& record, const Cell& cell) {
  record.id = cell.id;
  record.kind = cell.kind;
  record.scaling = cell.scaling;
  record.variant = cell.variant;
  record.repeat = cell.repeat;
}

void describe_without_plan(Record& record, const Runner& runner, const Cell& cell) {
  train::Options probe = cell.options;
  probe.global_batch = 0;
  probe.local_batch = train::batch_unit(probe);
  try {
    const auto setup = train::inspect(probe, backend_for(runner, probe));
    record.model = setup.model;
    record.data = setup.data;
  } catch (const base::Error&) {
    // No model or no data at all.
  }
}

/// What can be said of a cell that is not run: its settings, its plan, and why.
Record skipped(const Runner& runner, const Cell& cell) {
  Record record;
  label(record, cell);
  record.status = "skipped";
  record.reason = cell.skip;
  record.command = runner.command;
  record.settings = train::settings(cell.options);
  record.environment = measure::environment();
  record.workers = cell.options.workers;
  record.local_batch = cell.options.local_batch > 0 ? cell.options.local_batch
                                                    : cell.options.global_batch / cell.options.workers;
  record.global_batch = cell.options.global_batch > 0 ? cell.options.global_batch
                                                      : cell.options.local_batch * cell.options.workers;
  record.batch_given_as = cell.options.global_batch > 0 ? "global" : "local";
  record.model.name = cell.options.model;
  record.data.spec = cell.options.data;
  try {
    const auto setup = train::inspect(cell.options, backend_for(runner, cell.options));
    record.memory.plan_bytes = setup.plan.total_bytes();
    record.memory.available_bytes = setup.usable_bytes;
    record.model = setup.model;
    record.data = setup.data;
  } catch (const base::Error&) {
    // The reason for skipping is often the very one for which there is no plan: what a smaller batch would
    // tell is still true of model and data.
    describe_without_plan(record, runner, cell);
  }
  return record;
}

/// What this process can tell alone of a cell before others begin it: Error for impossible options, or a plan
/// that does not fit.
void require_possible(const train::Options& options, const train::Backend& backend) {
  const auto setup = train::inspect(options, backend);
  if (setup.plan.total_bytes() > setup.usable_bytes)
    base::fail(base::ErrorKind::device,
               "the plan is {:.2f} GB for each process, and it may use {:.2f} GB; use a smaller batch",
               static_cast<double>(setup.plan.total_bytes()) / 1e9,
               static_cast<double>(setup.usable_bytes) / 1e9);
}

Record run_cell(const Runner& runner, const Cell& cell, int index) {
  const train::Options options = as_run(cell, runner.command);
  bool begun = false;
  try {
    const auto backend = backend_for(runner, options);
    if (runner.together) {
      require_possible(options, backend);
      begun = true;
      runner.together->begin(index);
    }
    Record record = train::run(options, backend, runner.stop, runner.progress);
    label(record, cell);
    return record;
  } catch (const base::Error& error) {
    if (begun) throw;  // the others may be in the middle of it
    Cell refused = cell;
    refused.skip = error.what();
    Record record = skipped(runner, refused);
    // What the options or the plan ruled out never began: "skipped", as a sweep says it of the same batch.
    const bool has_begun =
        error.kind() != base::ErrorKind::usage && record.memory.plan_bytes <= record.memory.available_bytes;
    if (has_begun) record.status = "failed";
    return record;
  }
}

}  // namespace

train::Options as_run(const Cell& cell, const std::string& command) {
  train::Options options = cell.options;
  options.command = command;
  options.started = base::Clock::now();  // the first step is counted from the cell, not from the study
  options.out.clear();                   // the study keeps the cell's record, under the cell's name
  return options;
}

std::vector<Record> run_cells(const std::vector<Cell>& cells, const Runner& runner) {
  Kept kept_records(cells, runner);
  std::vector<Record> records;
  for (std::size_t i = 0; i < cells.size() && !runner.stop.stop_requested(); ++i) {
    const Cell& cell = cells[i];
    auto kept = kept_records.take(cell.id);
    if (runner.cell)
      runner.cell(static_cast<int>(i), static_cast<int>(cells.size()), cell.id, kept.has_value());
    const bool fresh = !kept.has_value();
    Record record = kept                ? std::move(*kept)
                    : cell.skip.empty() ? run_cell(runner, cell, static_cast<int>(i))
                                        : skipped(runner, cell);
    if (record.status == "interrupted" && !runner.directory.empty() && cell.kind != "converge")
      break;  // half a window is no measurement: the cell is run again when the study goes on
    if (fresh && !runner.directory.empty()) measure::write_record(record_path(runner, cell), record);
    if (runner.done) runner.done(record);
    records.push_back(std::move(record));
  }
  return records;
}

}  // namespace paceline::study
