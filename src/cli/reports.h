#pragma once

/// Reports to files.

#include <filesystem>
#include <string>
#include <vector>

#include "cli/settings.h"
#include "measure/record.h"
#include "report/document.h"

namespace paceline::cli {

/// The output directory, made before the first step is computed: one that cannot be written is found now, not
/// after hours. Where nothing was left in it but events (the options were refused, say) and it is new, it
/// goes again at the end. While it lives no other run of this host is let in (a file system of the network
/// may not know such locks).
class OutputDirectory {
 public:
  /// Errors   Error(data) naming the directory and the system's reason; Error(usage) when another run is
  ///          writing there
  explicit OutputDirectory(const std::filesystem::path& path);
  ~OutputDirectory();
  OutputDirectory(const OutputDirectory&) = delete;
  OutputDirectory& operator=(const OutputDirectory&) = delete;

 private:
  /// False: another run has it. A file system without locks has none to refuse.
  [[nodiscard]] bool lock_it() const;

  std::filesystem::path path_;
  bool made_ = false;
  int lock_ = -1;  ///< the directory, opened; the system ends the lock with the process
};

/// Writes the forms whose path is not empty; every file is whole or untouched. Returns a line for each: what
/// it is and where.
std::vector<std::string> write_reports(const report::Document& document, const Settings::Report& where);

struct RecordsRead {
  std::vector<measure::Record> records;  ///< oldest first
  std::vector<std::string> remarks;      ///< what was not counted, and why: sentences for screen and report
};

/// The records in `paths`: files, and of directories every JSON file below them that is a record. A file that
/// is reached twice is read once, and a measurement counts once whatever its files are called: a copy among
/// the repeats would narrow their interval. Of a directory's other JSON files those are named that look like
/// a record's remains (docs/record.md); other programs' may lie there.
///
/// Errors   Error(data) for a path that does not exist, a file that is no record, a directory without any
[[nodiscard]] RecordsRead read_records(const std::vector<std::filesystem::path>& paths);

}  // namespace paceline::cli
