#pragma once

/// Imports measurements of other programs as tables. What a file does not say stays unknown.

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "table/table.h"

namespace paceline::table {

/// What the user adds, by the name of a table's column: its value in all rows where the file gives none; for
/// CSVs of metrics, the name of the CSV's column that holds it.
using GivenFacts = std::map<std::string, std::string>;

/// One format.
struct Importer {
  std::string_view name;  ///< "nccl-tests text"
  /// Whether a file with this beginning has this format.
  bool (*is_it)(std::string_view head);
  /// Reads all files of one run. There is exactly one unless `joins_files`.
  ///
  /// Memory   formats with large files keep only their timed events, not the text
  /// Errors   Error(data) with file and position
  Table (*read)(std::span<const std::filesystem::path> files, const GivenFacts& given);
  bool joins_files = false;  ///< several files are the ranks of one run
};

/// The first 64 KiB of a file, which determine its format. A file packed by gzip is unpacked first.
///
/// Errors   Error(data) with the file: it cannot be read
[[nodiscard]] std::string begin_of(const std::filesystem::path& path);

/// All formats, in the order in which they are tried.
[[nodiscard]] std::span<const Importer> importers();
/// The format of a file with this beginning, or nullptr.
[[nodiscard]] const Importer* find_importer(std::string_view head);

/// One table for each file, or one for all files of a format that joins them. `given` fills in only what the
/// files leave unknown. One bad file ends the import.
///
/// Errors   Error(data) naming file and position, or the known formats if the file has none of them;
///          Error(usage) if `given` names a column that tables do not have
[[nodiscard]] std::vector<Table> import_files(std::span<const std::filesystem::path> files,
                                              const GivenFacts& given);

// The formats. Each has a source file of its own in this folder.
[[nodiscard]] Importer nccl_tests_text();
[[nodiscard]] Importer nccl_tests_json();
[[nodiscard]] Importer ddp_benchmark();
[[nodiscard]] Importer kineto();
[[nodiscard]] Importer horovod_timeline();
[[nodiscard]] Importer metrics_csv();

}  // namespace paceline::table
