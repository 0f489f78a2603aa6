/// Running cells in order, reusing what an earlier, stopped study has already measured.

#include <fmt/format.h>

#include <filesystem>
#include <optional>

#include "base/error.h"
#include "study/study.h"

namespace paceline::study {
namespace {

using measure::Record;

std::filesystem::path record_path(const Runner& runner, const Cell& cell) {
  return runner.directory / "records" / (cell.id + ".json");
}

/// The record of an earlier run of the very same cell, if it is complete. A record of other settings is
/// measured anew: it would answer another question.
std::optional<Record> reusable(const Runner& runner, const Cell& cell) {
  if (runner.directory.empty() || !std::filesystem::exists(record_path(runner, cell))) return std::nullopt;
  Record record;
  try {
    record = measure::read_record(record_path(runner, cell));
  } catch (const base::Error&) {
    return std::nullopt;  // damaged or of another version: measured anew
  }
  if (record.status != "complete" || record.settings != train::settings(cell.options)) return std::nullopt;
  return record;
}

void label(Record& record, const Cell& cell) {
  record.id = cell.id;
  record.kind = cell.kind;
  record.scaling = cell.scaling;
  record.variant = cell.variant;
  record.repeat = cell.repeat;
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
    const auto setup = train::inspect(cell.options, runner.backend);
    record.memory.plan_bytes = setup.plan.total_bytes();
    record.memory.available_bytes = setup.usable_bytes;
    record.model = setup.model;
    record.data = setup.data;
  } catch (const base::Error&) {
    // The reason for skipping is often the very one for which there is no plan.
  }
  return record;
}

Record run_cell(const Runner& runner, const Cell& cell) {
  train::Options options = cell.options;
  options.command = runner.command;
  options.out.clear();  // the study keeps the cell's record, under the cell's name
  try {
    Record record = train::run(options, runner.backend, runner.stop, runner.progress);
    label(record, cell);
    return record;
  } catch (const base::Error& error) {
    Cell failed = cell;
    failed.skip = error.what();
    Record record = skipped(runner, failed);
    record.status = "failed";
    return record;
  }
}

}  // namespace

std::vector<Record> run_cells(const std::vector<Cell>& cells, const Runner& runner) {
  std::vector<Record> records;
  for (std::size_t i = 0; i < cells.size() && !runner.stop.stop_requested(); ++i) {
    const Cell& cell = cells[i];
    auto kept = reusable(runner, cell);
    if (runner.cell)
      runner.cell(static_cast<int>(i), static_cast<int>(cells.size()), cell.id, kept.has_value());
    const bool fresh = !kept.has_value();
    Record record = kept                ? std::move(*kept)
                    : cell.skip.empty() ? run_cell(runner, cell)
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
