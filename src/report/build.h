#pragma once

/// Builds a report from records: every conclusion that they allow, and where they allow none, the reason.

#include <span>
#include <string>
#include <vector>

#include "measure/record.h"
#include "report/document.h"
#include "table/table.h"

namespace paceline::report {

struct BuildOptions {
  std::string title;    ///< empty: made from model and data
  std::string command;  ///< that makes this report; empty: unknown
  /// Sentences about the input that are not in the records; shown at the top.
  std::vector<std::string> remarks = {};
};

/// A report of any mix of records: one training, a sweep, scaling cells, a study, or all of them. Sections
/// without records are left out; the summary says which questions were not measured.
///
/// Errors   none: records that cannot be compared, failed or were skipped are named in the report
[[nodiscard]] Document build(std::span<const measure::Record> records, const BuildOptions& options = {});

/// The same with tables of other programs: what is right and wrong in them, and where their time goes, as far
/// as they say. Ratios never mix their rows with records.
///
/// Requires  at least one table
[[nodiscard]] Document build_with_tables(std::span<const measure::Record> records,
                                         std::span<const table::Table> tables,
                                         const BuildOptions& options = {});

}  // namespace paceline::report
