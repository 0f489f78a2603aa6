#pragma once

/// What a user names to be checked or reported: records, tables, and files of other programs, told apart by
/// content.

#include <filesystem>
#include <vector>

#include "cli/reports.h"
#include "table/table.h"

namespace paceline::cli {

struct Evidence {
  RecordsRead records;
  std::vector<table::Table> tables;  ///< one for each table file, one for all files of an imported run
};

/// Directories hold records. Files are told apart by what is in them.
///
/// With `is_same_machine` a row of a table may name a record's id as its baseline, which is then a row too.
///
/// Errors   Error(data) naming the file: not there, neither record nor table nor a known format, or broken;
///          Error(usage) for a baseline that is a record where nobody said that both are of one machine
[[nodiscard]] Evidence read_evidence(const std::vector<std::filesystem::path>& paths, bool is_same_machine);

}  // namespace paceline::cli
