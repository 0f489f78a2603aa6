#pragma once

/// Makes output directories, reads records, and writes reports.

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.h"
#include "cli/options/options.h"
#include "cli/screen/screen.h"
#include "measure/record.h"
#include "report/document.h"

namespace paceline::cli {

/// paceline-out/COMMAND-20250301-120000, by local time: a new directory for each call, so that no record is
/// overwritten. It does not exist yet.
[[nodiscard]] std::filesystem::path new_directory(std::string_view command);

/// The output directory. It is made before the first step is computed, so that a directory that cannot be
/// written is found at once. If it is new and only events were written (the options were refused, say), it is
/// removed at the end. While this object exists, no other run of this host may use the directory (a network
/// file system may lack such locks).
class OutputDirectory {
 public:
  /// Errors   Error(data) naming the directory and the system's reason; Error(usage) when another run is
  ///          writing there
  explicit OutputDirectory(const std::filesystem::path& path);
  ~OutputDirectory();
  OutputDirectory(const OutputDirectory&) = delete;
  OutputDirectory& operator=(const OutputDirectory&) = delete;

  /// If the directory was moved or removed meanwhile: makes and locks one of that name anew, and returns a
  /// sentence about it; else "".
  ///
  /// Errors   Error(data): another run writes to a directory of that name now
  [[nodiscard]] std::string follow();

 private:
  /// False: another run holds the lock. Always true on a file system without locks.
  [[nodiscard]] bool lock_it() const;

  std::filesystem::path path_;
  bool made_ = false;
  base::Descriptor lock_;  ///< the open directory; the system releases the lock with the process
};

/// For a plan: the errors with which OutputDirectory would refuse `path`, without making or holding it.
void require_output_directory(const std::filesystem::path& path);

/// Writes the forms whose path is not empty, each completely or not at all. Returns a line for each: what it
/// is and where.
std::vector<std::string> write_reports(const report::Document& document, const Settings::Report& where);

/// Writes the figures of the report as SVG, and as PDF where a program for that is installed. Returns lines
/// on how many, and on questions without one.
std::vector<std::string> write_figures(const report::Document& document,
                                       const std::filesystem::path& directory);

/// Prints a line for each expectation of the report. Returns the exit code: 1 if one failed, else 2 if one is
/// not known to hold, else 0.
[[nodiscard]] int say_expectations(const report::Document& document, Screen& screen);

/// Prints the report, or its beginning: what a screen holds beside a line for each expectation.
void say_report(const report::Document& document, bool is_whole, Screen& screen);

struct RecordsRead {
  std::vector<measure::Record> records;  ///< oldest first
  std::vector<std::string> remarks;      ///< what was not counted and why: sentences for screen and report
};

/// Reads the records in `paths`: files, and in directories every JSON file below them that is a record. A
/// file is read once, and a measurement counts once whatever its files are called, since a copy among the
/// repeats would narrow their interval. JSON files in directories that look like damaged records
/// (docs/record.md) are named; other programs' files are ignored.
///
/// Errors   Error(data) for a path that does not exist, a file that is no record, a directory without records
[[nodiscard]] RecordsRead read_records(const std::vector<std::filesystem::path>& paths);

}  // namespace paceline::cli
