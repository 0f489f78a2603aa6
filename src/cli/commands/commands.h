#pragma once

/// The commands, some of them with others of their kind in a file. Each returns the exit code: 0, or that of
/// the signal that stopped it. Failures are thrown as Error, which main prints.

#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

#include "cli/options/options.h"
#include "cli/reports.h"
#include "table/table.h"

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

// The table of commands, from which the overview, completions and the manual page are made.

struct CommandRow {
  std::string_view name;
  Command command;
  std::string_view summary;
  int (*run)(const Settings&);
};

/// Every command, in the order of the overview.
[[nodiscard]] std::span<const CommandRow> command_rows();

int train_command(const Settings& settings);
int sweep_command(const Settings& settings);
int scale_command(const Settings& settings);
int converge_command(const Settings& settings);
int search_command(const Settings& settings);
int evaluate_command(const Settings& settings);
int classify_command(const Settings& settings);
int study_command(const Settings& settings);
int report_command(const Settings& settings);
int explain_command(const Settings& settings);
int compare_command(const Settings& settings);
int verify_command(const Settings& settings);
int check_command(const Settings& settings);
int import_command(const Settings& settings);
int model_command(const Settings& settings);
int doctor_command(const Settings& settings);
int init_command(const Settings& settings);
int data_command(const Settings& settings);
int comm_command(const Settings& settings);
int launch_command(const Settings& settings);
int sbatch_command(const Settings& settings);
int runs_command(const Settings& settings);
int serve_command(const Settings& settings);
int completion_command(const Settings& settings);
int manual_command(const Settings& settings);

}  // namespace paceline::cli
