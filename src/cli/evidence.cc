#include "cli/evidence.h"

#include <set>
#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "check/check.h"
#include "table/import/import.h"

namespace paceline::cli {
namespace {

namespace fs = std::filesystem;

void join_records(Evidence& evidence, bool is_same_machine) {
  const auto& records = evidence.records.records;
  for (auto& table : evidence.tables) {
    const auto* row = check::row_over_record(table, records);
    if (row == nullptr) continue;
    if (!is_same_machine)
      base::fail(
          base::ErrorKind::usage,
          "{}: the baseline of {} is '{}', a record of Paceline: a row of a table is compared with a record "
          "only where --same-machine says that both were measured on one machine",
          table.where, row->name(), row->text("baseline"));
    table = check::with_named_records(std::move(table), records);
  }
}

}  // namespace

Evidence read_evidence(const std::vector<fs::path>& paths, bool is_same_machine) {
  std::vector<fs::path> records, imported, tables;
  Evidence evidence;
  for (const auto& path : paths) {
    std::error_code unreadable;
    // Missing files and pipes (which can be read only once) are left to the reader of records.
    if (!fs::is_regular_file(path, unreadable)) {
      records.push_back(path);
      continue;
    }
    const auto head = table::begin_of(path);
    const auto first = head.find_first_not_of(" \t\r\n");
    const bool is_json = first == std::string::npos || head[first] == '{' || path.extension() == ".json";
    if (head.find("\"paceline-record-") != std::string::npos)
      records.push_back(path);
    else if (table::looks_like_table(head))
      tables.push_back(path);
    else if (table::find_importer(head) != nullptr)
      imported.push_back(path);
    else if (is_json)
      records.push_back(path);
    else
      base::fail(
          base::ErrorKind::data,
          "{}: is neither a record nor a table nor a file of a known program; a table begins with its columns "
          "('paceline check --template scaling' prints one), and docs/check.md names the programs",
          path.string());
  }
  if (!records.empty()) evidence.records = read_records(records);
  std::set<std::string> ids;
  for (const auto& record : evidence.records.records) ids.insert(record.id);
  for (const auto& path : tables)
    evidence.tables.push_back(table::read_table(base::read_file(path), path.string(), ids));
  for (auto& table : table::import_files(imported, {})) evidence.tables.push_back(std::move(table));
  join_records(evidence, is_same_machine);
  return evidence;
}

}  // namespace paceline::cli
