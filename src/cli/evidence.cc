#include "cli/evidence.h"

#include <fstream>
#include <system_error>

#include "base/error.h"
#include "base/file.h"
#include "table/import/import.h"

namespace paceline::cli {
namespace {

namespace fs = std::filesystem;

/// The begin of the file, of which its format is told.
std::string head_of(const fs::path& path) {
  constexpr std::size_t kHead = 64 << 10;
  std::ifstream file(path, std::ios::binary);
  std::string head(kHead, '\0');
  file.read(head.data(), static_cast<std::streamsize>(head.size()));
  head.resize(static_cast<std::size_t>(file.gcount()));
  return head;
}

}  // namespace

Evidence read_evidence(const std::vector<fs::path>& paths) {
  std::vector<fs::path> records, imported;
  Evidence evidence;
  for (const auto& path : paths) {
    std::error_code unreadable;
    // What is not there, and pipes, which are read once, are the reader of records' to say.
    if (!fs::is_regular_file(path, unreadable)) {
      records.push_back(path);
      continue;
    }
    const auto head = head_of(path);
    const auto first = head.find_first_not_of(" \t\r\n");
    const bool is_json = first == std::string::npos || head[first] == '{' || path.extension() == ".json";
    if (head.find("\"paceline-record-") != std::string::npos)
      records.push_back(path);
    else if (table::looks_like_table(head))
      evidence.tables.push_back(table::read_table(base::read_file(path), path.string()));
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
  for (auto& table : table::import_files(imported, {})) evidence.tables.push_back(std::move(table));
  return evidence;
}

}  // namespace paceline::cli
