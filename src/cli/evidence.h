#pragma once

/// Reads the inputs of `check` and `report`: records, tables, and files of other programs, recognised by
/// content.

#include <filesystem>
#include <vector>

#include "cli/reports.h"
#include "table/table.h"

namespace paceline::cli {

struct Evidence {
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
[[nodiscard]] Evidence read_evidence(const std::vector<std::filesystem::path>& paths, bool is_same_machine);

}  // namespace paceline::cli
