#pragma once

/// Records to a report: every conclusion that the records allow, and the words where they allow none.

#include <span>
#include <string>
#include <vector>

#include "measure/record.h"
#include "report/document.h"
#include "table/table.h"

namespace paceline::report {

struct BuildOptions {
  std::string title;    ///< empty: made from model and data
  std::string command;  ///< that made this report; empty: not said
  /// Sentences on what was given and does not stand in the records; shown on top.
  std::vector<std::string> remarks = {};
};

/// A report of any mix of records: one training, a sweep, scaling cells, a study, or all of them. Sections
/// without records are left out; the summary says which questions were not measured.
///
/// Errors   none: records that cannot be compared, failed or were skipped are named in the report
[[nodiscard]] Document build(std::span<const measure::Record> records, const BuildOptions& options = {});

/// The same with what other programs measured: what holds in their tables and what does not, and where their
/// time goes, as far as they know. Their rows are never in one ratio with records.
///
/// Precondition   there is a table
[[nodiscard]] Document build_with_tables(std::span<const measure::Record> records,
                                         std::span<const table::Table> tables,
                                         const BuildOptions& options = {});

}  // namespace paceline::report
