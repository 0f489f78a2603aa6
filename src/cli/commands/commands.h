#pragma once

/// The commands, some of them with others of their kind in a file. Each returns the exit code: 0, or that of
/// the signal that stopped it. Failures are thrown as Error, which main prints.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "analysis/predict/forecast.h"
#include "cli/options/completion.h"
#include "cli/reports.h"
#include "engine/engine.h"
#include "graph/graph.h"
#include "measure/record.h"
#include "study/study.h"
#include "table/import/import.h"
#include "table/table.h"
#include "train/given/backend.h"

namespace paceline::cli {

// Reads the inputs of `check` and `report`: records, tables, and files of other programs, recognised by
// content.

struct Inputs {
  RecordsRead records;
  std::vector<table::Table> tables;  ///< one per table file, one for all files of an imported run
};

/// Directories contain records. Files are recognised by content.
///
/// With `is_same_machine` a row of a table may name a record's id as its baseline; the record is then added
/// as a row.
///
/// Errors   Error(data) naming the file: it does not exist, is neither record nor table nor a known format,
///          or is broken; Error(usage) for a record as baseline without `is_same_machine`
[[nodiscard]] Inputs read_inputs(const std::vector<std::filesystem::path>& paths, bool is_same_machine);

// predict_inputs.cc: what predict makes of its files.

/// From rows with times of steps, or rates: as far as a table goes.
///
/// Errors   Error(data): file and line, and which column is missing or holds two different texts
[[nodiscard]] analysis::StepModel step_model_of(const table::Table& table);

/// The link that the records emulated.
[[nodiscard]] std::optional<analysis::AddedLink> emulated_link(std::span<const measure::Record> records);

/// Workers and cluster, by --workers, --cluster and --link. `remarks` gets sentences.
[[nodiscard]] analysis::ForecastRequest forecast_request(const Settings::Predict& options,
                                                         const analysis::StepModel& model,
                                                         std::span<const measure::Record> records,
                                                         std::vector<std::string>& remarks);

// cells.cc: what sweep, scale, converge, search and study share.

/// How a list of cells is run: study::run_cells, or a search that chooses among them.
using RunList =
    std::function<std::vector<measure::Record>(const std::vector<study::PlannedCell>&, const study::Runner&)>;

/// Runs `cells`, in several processes if there are: the first one leads, the others follow, and one without
/// work sleeps until the next order. Writes records/, report.html, report.md, report.json and csv/ into the
/// output directory (settings.train.out, or paceline-out/<command>). `backend`: of this process alone.
/// Returns the exit code.
int run_cells(const Settings& settings, const train::Backend& backend,
              const std::vector<study::PlannedCell>& cells, const RunList& run = study::run_cells);

// ddp_records.cc: trainers of PyTorch under paceline_ddp.py, for conclusions that need single steps.

/// The steps of such a trainer as a record, in memory only. `where`: its file.
///
/// Errors   Error(data): a rank is missing, or ranks have unknown or different batches
[[nodiscard]] measure::Record record_of(const table::DdpRun& run, const std::string& where);
/// Of files that are all such a trainer's; nothing if none is.
///
/// Errors   Error(usage): some are; Error(data): one cannot be read
[[nodiscard]] std::vector<measure::Record> records_of_trainer(
    const std::vector<std::filesystem::path>& paths);

class Screen;

/// model_export.cc: paceline model export.
void export_model(const Settings& settings, Screen& screen);

// model.cc: what `model show` and `doctor --kernels` look at.

/// `name` with the given or its usual input, and the given classes.
[[nodiscard]] graph::Graph model_for(const Settings& settings, const std::string& name);
/// How it is compiled, by --local-batch, --precision and --threads.
[[nodiscard]] engine::CompileOptions how_to_compile(const Settings& settings);

/// doctor.cc: the row about the memory that processes of a host share. `bytes`: the size of /dev/shm.
[[nodiscard]] std::string text_about_shared_memory(std::uintmax_t bytes, std::uintmax_t available);

/// Every command, in the order of the overview.
[[nodiscard]] std::span<const CommandRow> command_rows();

#define PACELINE_DECLARE(bit, name) int name##_command(const Settings& settings);
PACELINE_COMMANDS(PACELINE_DECLARE)
#undef PACELINE_DECLARE

}  // namespace paceline::cli
