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

/// What the user adds: values of columns for all rows, and for CSVs of metrics which of their columns is
/// meant.
using GivenFacts = std::map<std::string, std::string>;

/// One format.
struct Importer {
  std::string_view name;  ///< "nccl-tests text"
  /// Whether a file with this beginning has this format.
  bool (*is_it)(std::string_view head);
  /// Reads all files of one run together; formats with one file per run get one.
  ///
  /// Memory   for formats with large files: no more than their spans
  /// Errors   Error(data) with file and position
  Table (*read)(std::span<const std::filesystem::path> files, const GivenFacts& given);
  bool joins_files = false;  ///< several files are the ranks of one run
};

/// The first 64 KiB of a file's contents (unpacked if packed by gzip), which determine its format.
///
/// Errors   Error(data) with the file: it cannot be read
[[nodiscard]] std::string begin_of(const std::filesystem::path& path);

/// All formats, in the order in which they are tried.
[[nodiscard]] std::span<const Importer> importers();
/// The format of a file with this beginning, or nullptr.
[[nodiscard]] const Importer* find_importer(std::string_view head);

/// One table for each file, or for all files of a format that joins them. `given` fills in what the files
/// leave unknown.
///
/// Errors   Error(data) naming file and position, or the known formats if it has none of them; Error(usage)
///          for a column in `given` that does not exist
[[nodiscard]] std::vector<Table> import_files(std::span<const std::filesystem::path> files,
                                              const GivenFacts& given);

// The formats, one a file.
[[nodiscard]] Importer nccl_tests_text();
[[nodiscard]] Importer nccl_tests_json();
[[nodiscard]] Importer ddp_benchmark();
[[nodiscard]] Importer kineto();
[[nodiscard]] Importer horovod_timeline();
[[nodiscard]] Importer metrics_csv();

}  // namespace paceline::table
