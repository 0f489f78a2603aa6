#include "cli/reports.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/error.h"
#include "base/file.h"

namespace paceline::cli {
namespace {

namespace fs = std::filesystem;

/// A report is JSON too; records say what they are by their schema.
bool is_record(const fs::path& file) {
  return file.extension() == ".json" && base::read_file(file).find("\"paceline-record-") != std::string::npos;
}

std::vector<fs::path> record_files(const fs::path& directory) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::recursive_directory_iterator(directory))
    if (entry.is_regular_file() && is_record(entry.path())) files.push_back(entry.path());
  if (files.empty())
    base::fail(base::ErrorKind::data,
               "{}: no record is in it; train leaves record.json, the others records/*.json in their --out "
               "directory",
               directory.string());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

OutputDirectory::OutputDirectory(const fs::path& path) : path_(path) {
  std::error_code failed;
  made_ = fs::create_directories(path, failed);
  if (!failed && ::access(path.c_str(), W_OK | X_OK) != 0) failed = {errno, std::generic_category()};
  if (failed)
    base::fail(base::ErrorKind::data, "--out {}: cannot be written to: {}; give another directory",
               path.string(), failed.message());
  lock_ = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (lock_ >= 0 && ::flock(lock_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
    ::close(lock_);
    base::fail(base::ErrorKind::usage,
               "--out {}: another run is writing to it; wait for its end, or give another --out",
               path.string());
  }
}

OutputDirectory::~OutputDirectory() {
  std::error_code not_empty;
  if (made_) fs::remove(path_, not_empty);
  if (lock_ >= 0) ::close(lock_);
}

std::vector<std::string> write_reports(const report::Document& document, const Settings::Report& where) {
  // Before any is written.
  base::require_directory_of(where.markdown, "--markdown");
  base::require_directory_of(where.json, "--json");
  base::require_directory_of(where.html, "--html");
  std::vector<std::string> lines;
  if (!where.markdown.empty()) {
    base::write_file(where.markdown, report::to_markdown(document));
    lines.push_back("markdown: " + where.markdown.string());
  }
  if (!where.json.empty()) {
    base::write_file(where.json, report::to_json(document));
    lines.push_back("json:     " + where.json.string());
  }
  if (!where.csv.empty()) {
    int tables = 0;
    for (const auto& section : document.sections)
      for (const auto& block : section.blocks)
        if (const auto* table = std::get_if<report::Table>(&block)) {
          base::write_file(where.csv / (table->id + ".csv"), report::to_csv(*table));
          ++tables;
        }
    lines.push_back(fmt::format("csv:      {} ({} tables)", where.csv.string(), tables));
  }
  if (!where.html.empty()) {
    base::write_file(where.html, report::to_html(document));
    lines.push_back("page:     " + where.html.string());
  }
  return lines;
}

std::vector<measure::Record> read_records(const std::vector<fs::path>& paths) {
  std::vector<measure::Record> records;
  for (const auto& path : paths) {
    std::error_code unreadable;
    if (!fs::exists(path, unreadable))
      base::fail(base::ErrorKind::data,
                 "{}: there is no such record or directory; train and study name theirs at the end",
                 path.string());
    if (!fs::is_directory(path)) {
      records.push_back(measure::read_record(path));
      continue;
    }
    for (const auto& file : record_files(path)) records.push_back(measure::read_record(file));
  }
  std::stable_sort(records.begin(), records.end(),
                   [](const auto& a, const auto& b) { return a.created < b.created; });
  return records;
}

}  // namespace paceline::cli
