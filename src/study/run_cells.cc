/// Running cells in order, reusing what an earlier, stopped study has already measured.

#include <algorithm>
#include <filesystem>
#include <utility>

#include "base/clock.h"
#include "base/error.h"
#include "base/file.h"
#include "study/settle.h"
#include "study/study.h"
#include "train/given/option_rows.h"
#include "train/record/run_record.h"
#include "train/run.h"

namespace paceline::study {
namespace {

using measure::Record;

void label(Record& record, const Runner& runner, const PlannedCell& cell) {
  record.id = cell.id;
  record.kind = cell.kind;
  record.scaling = cell.scaling;
  if (!cell.also.empty()) record.also = cell.also;
  record.variant = cell.variant;
  record.repeat = cell.repeat;
  for (const auto& note : {cell.note, runner.note})
    if (!note.empty()) record.notes.push_back(note);
}

void describe_without_plan(Record& record, const Runner& runner, const PlannedCell& cell) {
  const train::Options probe = with_smallest_batch(cell.options);
  try {
    const auto setup = train::inspect(probe, backend_for(runner, probe));
    record.model = setup.model;
    record.data = setup.data;
  } catch (const base::Error&) {
    // No model or no data at all.
  }
}

/// The record of a cell that is not run, as it was asked for.
Record record_of_asked(const Runner& runner, const PlannedCell& cell, const char* status,
                       const std::string& reason) {
  Record record;
  label(record, runner, cell);
  record.status = status;
  record.reason = reason;
  record.command = runner.command;
  record.settings = train::settings(cell.options);
  record.environment = train::machine_of(backend_for(runner, cell.options).place);
  record.workers = cell.options.workers;
  record.local_batch = cell.local_batch();
  record.global_batch = cell.global_batch();
  record.batch_given_as = cell.options.global_batch > 0 ? "global" : "local";
  record.model.name = cell.options.model;
  record.data.spec = cell.options.data;
  if (train::is_data_parallel(cell.options)) record.communication.parallel = "data-parallel";
  return record;
}

/// The record of a cell that is not run: its settings, its plan, and the reason.
Record skipped(const Runner& runner, const PlannedCell& cell) {
  Record record = record_of_asked(runner, cell, "skipped", cell.skip);
  try {
    const auto setup = train::inspect(cell.options, backend_for(runner, cell.options));
    record.memory = setup.memory;
    // It was found to fit a moment ago; a few free pages less do not make it too large.
    const auto fitted = [](auto& memory) {
      memory.available_bytes = std::max(memory.available_bytes, memory.plan_bytes);
    };
    if (cell.fits) fitted(record.memory);
    if (cell.fits && record.memory.device) fitted(*record.memory.device);
    record.model = setup.model;
    record.data = setup.data;
  } catch (const base::Error&) {
    // Often the reason for skipping is also why there is no plan. A plan with a smaller batch still describes
    // model and data.
    describe_without_plan(record, runner, cell);
  }
  return record;
}

/// The record of a cell that is left over when the study is stopped. It gets no plan, because after Ctrl-C
/// the program should end quickly. Model and data are copied from `other`, a record of the same study.
Record not_begun(const Runner& runner, const PlannedCell& cell, const Record* other) {
  Record record = record_of_asked(runner, cell, "interrupted", kNotBegun);
  if (other != nullptr) {
    record.model = other->model;
    record.data = other->data;
    record.data.steps_per_epoch = record.data.dropped_per_epoch = 0;  // these belong to the other's batch
  }
  return record;
}

/// Checks what this process alone can check before the processes begin a cell together.
/// Errors   usage: impossible options, or a plan that does not fit into memory
void require_possible(const train::Options& options, const train::Backend& backend) {
  const auto setup = train::inspect(options, backend);
  if (!setup.excess.empty())
    base::fail(base::ErrorKind::device, "the plan for each process is {}; use a smaller batch", setup.excess);
}

/// The record of a cell that ended with `error`.
Record not_completed(const Runner& runner, const PlannedCell& cell, const base::Error& error) {
  PlannedCell refused = cell;
  refused.skip = error.what();
  Record record = skipped(runner, refused);
  // A cell that the options or the plan rule out never began: it is "skipped", as a sweep calls the same
  // batch.
  const bool has_begun = error.kind() != base::ErrorKind::usage && !record.memory.exceeds_what_there_is();
  if (has_begun) record.status = "failed";
  return record;
}

/// Times the all-reduce alone. The record has the study's settings, model and data: they decide whether it is
/// reused when the study is continued.
Record time_collectives(const Runner& runner, const PlannedCell& cell, const train::Options& options,
                        const train::Backend& backend) {
  Record record = runner.collectives(options, backend, cell.collectives_s);
  record.command = runner.command;
  record.settings = train::settings(options);
  const auto setup = train::inspect(options, backend);
  record.model = setup.model;
  record.data = setup.data;
  return record;
}

/// `resumed`: the training continues from the checkpoint of an earlier, stopped study.
Record run_cell(const Runner& runner, const PlannedCell& cell, int index, bool resumed) {
  train::Options options = as_run(cell, runner.command);
  options.out = training_directory(runner, cell);
  if (resumed) options.resume = options.out;
  bool begun = false;
  try {
    const auto backend = backend_for(runner, options);
    if (runner.together) {
      require_possible(options, backend);
      begun = true;
      runner.together->begin(index, resumed);
    }
    Record record = cell.is_of_collectives() ? time_collectives(runner, cell, options, backend)
                                             : train::run(options, backend, runner.stop, runner.progress);
    label(record, runner, cell);
    if (record.status == "interrupted" && runner.interrupted) runner.interrupted();
    if (record.status == "complete" && !options.out.empty() && !cell.keeps_training)
      std::filesystem::remove_all(options.out);
    return record;
  } catch (const base::AgreedError& error) {
    return not_completed(runner, cell, error);  // the other processes have left the cell too
  } catch (const base::Error& error) {
    if (begun) throw;  // the others may be in the middle of it
    return not_completed(runner, cell, error);
  }
}

/// Removes the "not begun" records of an earlier, longer study whose cells this study does not have. They
/// would make every report partial.
void forget_not_begun(const Runner& runner, const std::vector<PlannedCell>& cells) {
  for (const auto& entry : base::entries_of(runner.directory / "records")) {
    if (entry.path().extension() != ".json") continue;
    const auto id = entry.path().stem().string();
    if (std::ranges::find(cells, id, &PlannedCell::id) != cells.end()) continue;
    try {
      if (measure::read_record(entry.path()).reason == kNotBegun) std::filesystem::remove(entry.path());
    } catch (const base::Error&) {
      // The report says what is wrong with it.
    }
  }
}

}  // namespace

train::Options as_run(const PlannedCell& cell, const std::string& command) {
  train::Options options = cell.options;
  options.command = command;
  options.started =
      base::Clock::now();  // the first step is timed from the start of the cell, not of the study
  options.out.clear();     // the study decides where a cell writes
  return options;
}

std::vector<Record> run_cells(const std::vector<PlannedCell>& cells, const Runner& runner) {
  auto all_kept = kept_records(cells, runner);
  const auto take_kept = [&](const std::string& id) {
    auto node = all_kept.extract(id);
    return node.empty() ? std::nullopt : std::optional<Record>(std::move(node.mapped()));
  };
  std::vector<Record> records;
  for (std::size_t i = 0; i < cells.size() && !runner.stop.stop_requested(); ++i) {
    const PlannedCell& cell = cells[i];
    auto kept = take_kept(cell.id);
    const bool fresh = !kept.has_value();
    // An earlier run without the sweep did not know that the cell serves the sweep too.
    const bool is_new_to = kept && !cell.also.empty() && kept->also != cell.also;
    if (is_new_to) kept->also = cell.also;
    const bool resumed = fresh && cell.skip.empty() && can_go_on(runner, cell);
    if (runner.cell)
      runner.cell(static_cast<int>(i), static_cast<int>(cells.size()), cell.id,
                  resumed ? Begin::resumed
                  : fresh ? Begin::anew
                          : Begin::kept);
    Record record = kept                ? std::move(*kept)
                    : cell.skip.empty() ? run_cell(runner, cell, static_cast<int>(i), resumed)
                                        : skipped(runner, cell);
    if (record.status == "interrupted" && !runner.directory.empty() && cell.training.empty())
      break;  // an unfinished window is no measurement: the cell is run again when the study is continued
    if ((fresh || is_new_to) && !runner.directory.empty())
      measure::write_record(record_path(runner, cell.id), record);
    if (runner.done) runner.done(record);
    records.push_back(std::move(record));
  }
  if (records.size() == cells.size() && !runner.directory.empty()) forget_not_begun(runner, cells);
  for (std::size_t i = records.size(); i < cells.size(); ++i) {
    auto record = take_kept(cells[i].id);
    const Record* const other = records.empty() ? nullptr : &records.front();
    if (!record) {
      record = not_begun(runner, cells[i], other);
      // An existing record, of a training that was begun in an earlier run, holds more.
      if (!runner.directory.empty() && !std::filesystem::exists(record_path(runner, cells[i].id)))
        measure::write_record(record_path(runner, cells[i].id), *record);
    }
    records.push_back(std::move(*record));
  }
  return records;
}

}  // namespace paceline::study
