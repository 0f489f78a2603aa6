#include "cli/reports.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <map>
#include <set>
#include <system_error>
#include <thread>
#include <utility>

#include "analysis/compare/consistency.h"
#include "base/error.h"
#include "base/file.h"
#include "base/text.h"
#include "measure/events.h"
#include "measure/record_file.h"
#include "measure/record_json.h"
#include "study/settle.h"

namespace paceline::cli {

std::filesystem::path new_directory(std::string_view command) {
  const auto now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  ::localtime_r(&now, &parts);
  char stamp[32];
  std::strftime(stamp, sizeof stamp, "%Y%m%d-%H%M%S", &parts);
  std::filesystem::path path = fmt::format("paceline-out/{}-{}", command, stamp);
  for (int next = 2; std::filesystem::exists(path); ++next)
    path = fmt::format("paceline-out/{}-{}-{}", command, stamp, next);
  return path;
}

namespace {

namespace fs = std::filesystem;

/// The files in the given paths.
struct RecordPaths {
  std::vector<fs::path> records;
  std::vector<fs::path> lost;       ///< JSON files that look like damaged records
  std::vector<fs::path> set_aside;  ///< folders that were skipped
  int gone = 0;                     ///< files that a run removed or replaced during the search
};

/// The text of a file in a directory where runs write; empty if it was removed meanwhile.
std::optional<std::string> text_of_file(const fs::path& file) {
  try {
    return measure::record_text(file);
  } catch (const base::Error&) {
    std::error_code unknown;
    if (fs::exists(file, unknown) || unknown) throw;
    return std::nullopt;
  }
}

/// Whether it is the folder for records of another machine or program, which a study's own report leaves out.
bool is_set_aside(const fs::path& directory) {
  return directory.filename() == study::kSetAside && base::is_folder(directory.parent_path() / "records");
}

/// Whether it belongs to a search, whose trainings are kept until it has chosen, and whose rungs have records
/// of their own.
bool is_of_search(const fs::path& directory) {
  return directory.parent_path().filename() == "trainings" &&
         directory.filename().string().starts_with("search-");
}

/// Whether a JSON file is probably a damaged record: it is empty, its end is missing, or it has a record's
/// name or place. Others are reports, or files of other programs.
bool looks_lost(const fs::path& file, const std::string& text) {
  const auto last = text.find_last_not_of(" \t\r\n");
  if (last == std::string::npos || (text[last] != '}' && text[last] != ']')) return true;
  const auto first = text.find_first_not_of(" \t\r\n");
  const bool holds_nothing = text.find_first_not_of(" \t\r\n", first + 1) == last;
  return holds_nothing || file.filename() == "record.json" || file.parent_path().filename() == "records";
}

/// What such a file is: the end of a sentence.
std::string why_lost(const fs::path& file) {
  std::error_code gone;
  if (const auto size = fs::file_size(file, gone); !gone && size > measure::kMostRecordBytes)
    return "is larger than any record";
  const auto text = text_of_file(file);
  return text ? measure::why_no_record(*text) : "is removed";
}

void look_into(const fs::path& directory, RecordPaths& found) {
  RecordPaths here;
  std::error_code vanished;  // a run may remove the folder meanwhile
  for (auto at = fs::recursive_directory_iterator(directory); at != fs::recursive_directory_iterator();
       at.increment(vanished)) {
    const auto& entry = *at;
    std::error_code dangling;  // a broken link is not a record
    if (entry.is_directory(dangling) && is_set_aside(entry.path())) {
      at.disable_recursion_pending();
      here.set_aside.push_back(entry.path());
    }
    if (entry.is_directory(dangling) && is_of_search(entry.path())) at.disable_recursion_pending();
    if (!entry.is_regular_file(dangling) || entry.path().extension() != ".json") continue;
    if (const auto size = entry.file_size(dangling); !dangling && size > measure::kMostRecordBytes) {
      if (looks_lost(entry.path(), "{ too large }")) here.lost.push_back(entry.path());
      continue;
    }
    const auto text = text_of_file(entry.path());
    if (!text) {
      ++found.gone;
      continue;
    }
    // Reports are JSON too; records are recognised by their schema.
    if (text->find("\"paceline-record-") != std::string::npos)
      here.records.push_back(entry.path());
    else if (looks_lost(entry.path(), *text))
      here.lost.push_back(entry.path());
  }
  std::sort(here.records.begin(), here.records.end());
  std::sort(here.lost.begin(), here.lost.end());
  if (here.records.empty())
    base::fail(ErrorKind::data,
               "{}: it holds no record; train writes record.json, the others records/*.json in their --out "
               "directory{}",
               directory.string(),
               here.lost.empty()
                   ? ""
                   : fmt::format("; {} {}", here.lost.front().string(), why_lost(here.lost.front())));
  found.records.insert(found.records.end(), here.records.begin(), here.records.end());
  found.lost.insert(found.lost.end(), here.lost.begin(), here.lost.end());
  found.set_aside.insert(found.set_aside.end(), here.set_aside.begin(), here.set_aside.end());
}

RecordPaths look_for_records(const std::vector<fs::path>& paths) {
  RecordPaths found;
  for (const auto& path : paths) {
    if (!base::is_there(path))
      base::fail(ErrorKind::data,
                 "{}: there is no such record or directory; train and study name theirs at the end",
                 path.string());
    if (fs::is_directory(path))
      look_into(path, found);
    else
      found.records.push_back(path);
  }
  return found;
}

/// Keeps every file once, under its first name; returns the number of names removed.
std::size_t drop_repeated(std::vector<fs::path>& files) {
  std::set<fs::path> seen;
  return std::erase_if(files, [&](const fs::path& file) {
    std::error_code is_pipe;  // a pipe, as in `report <(...)`, has only one name
    const auto whole = fs::canonical(file, is_pipe);
    return !seen.insert(is_pipe ? file : whole).second;
  });
}

/// A text that is equal for two records only if they are of the same measurement, whatever their names and
/// other edits: host, second of its beginning, and all raw times to the nanosecond. For a record without
/// times it is the whole record.
std::string identity(const measure::Record& record) {
  std::string times;
  const auto add = [&](const std::vector<double>& seconds) {
    for (const double one : seconds) times += fmt::format("{} ", one);
    times += '|';
  };
  for (const auto& rank : record.ranks) add(rank.step_s);
  if (record.collectives)
    for (const auto& collective : *record.collectives) add(collective.seconds);
  if (times.find_first_not_of('|') == std::string::npos) return measure::to_json(record);
  return record.environment.host + '|' + record.created + '|' + times;
}

struct Copies {
  int number = 0, edited = 0;  ///< edited: copies with equal times but other differences
  int gone = 0;                ///< files that were removed meanwhile
  std::string example;         ///< "b.json is a.json"
};

/// Keeps each measurement once: its first record, or the first that does not contradict itself.
std::vector<measure::Record> read_once(const std::vector<fs::path>& files, Copies& copies) {
  std::vector<measure::Record> records;
  std::map<std::string, std::size_t> by_identity;
  std::vector<fs::path> names;
  for (const auto& file : files) {
    const auto text = text_of_file(file);
    if (!text) {
      ++copies.gone;
      continue;
    }
    auto record = measure::record_from_json(*text, file.string());
    measure::make_visible(record);
    measure::read_pictures(file, record);
    const auto [found, is_new] = by_identity.try_emplace(identity(record), records.size());
    if (is_new) {
      records.push_back(std::move(record));
      names.push_back(file);
      continue;
    }
    auto& kept = records[found->second];
    auto& name = names[found->second];
    copies.edited += measure::to_json(kept) != measure::to_json(record);
    fs::path dropped = file;
    if (analysis::contradiction(kept) && !analysis::contradiction(record)) {
      kept = std::move(record);
      std::swap(name, dropped);
    }
    if (++copies.number == 1) copies.example = fmt::format("{} is {}", dropped.string(), name.string());
  }
  return records;
}

std::vector<std::string> remarks_on(std::size_t repeated, const Copies& copies, const RecordPaths& found) {
  const auto& lost = found.lost;
  std::vector<std::string> remarks;
  std::vector<std::string> parts;
  if (repeated > 0)
    parts.push_back(fmt::format("{} that had been read already", base::counted(repeated, "file")));
  if (copies.number > 0)
    parts.push_back(fmt::format(
        "{} with the host, start and all times of another one{} ({}{})",
        base::counted(copies.number, "record"),
        copies.edited > 0 ? fmt::format(", {} of them with other words or settings", copies.edited) : "",
        copies.example, copies.number > 1 ? ", ..." : ""));
  if (!parts.empty())
    remarks.push_back(
        fmt::format("Every measurement counts once; left out: {}.", fmt::join(parts, ", and ")));
  if (!lost.empty())
    remarks.push_back(fmt::format("Not read: {}, which {}{}.", lost.front().string(), why_lost(lost.front()),
                                  lost.size() == 1 ? ""
                                                   : fmt::format("; and {} more JSON {}", lost.size() - 1,
                                                                 lost.size() == 2 ? "file" : "files")));
  if (const int gone = found.gone + copies.gone; gone > 0)
    remarks.push_back(fmt::format("Not read: {} that a run replaced or removed meanwhile; look again.",
                                  base::counted(gone, "file")));
  for (const auto& folder : found.set_aside)
    remarks.push_back(
        fmt::format("Not read: {}, where a study put measurements of another machine or program; name it to "
                    "read it.",
                    folder.string()));
  return remarks;
}

/// Whether the run wrote only events.
bool holds_only_events(const fs::path& directory) {
  std::error_code unreadable;
  fs::directory_iterator entry(directory, unreadable);
  return !unreadable && entry != fs::directory_iterator() &&
         entry->path().filename() == measure::kEventsFile && ++entry == fs::directory_iterator();
}

}  // namespace

OutputDirectory::OutputDirectory(const fs::path& path) : path_(path) {
  std::error_code failed;
  base::end_of_links(path);
  made_ = fs::create_directories(path, failed);
  base::end_of_links(path);  // another user may have put a link there meanwhile
  if (!failed && ::access(path.c_str(), W_OK | X_OK) != 0) failed = {errno, std::generic_category()};
  if (failed)
    base::fail(ErrorKind::data, "--out {}: cannot be written to: {}; give another directory", path.string(),
               failed.message());
  lock_ = base::Descriptor(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (lock_.is_open() && !lock_it())
    base::fail(ErrorKind::usage,
               "--out {}: another run is writing to it; wait for its end, or give another --out",
               path.string());
}

/// `runs` and `serve` hold the lock for a moment when they check whether a run is in progress, so this
/// retries.
bool OutputDirectory::lock_it() const {
  constexpr int kLooks = 6;
  constexpr auto kBetween = std::chrono::milliseconds(20);
  for (int look = 0; look < kLooks; ++look) {
    if (look > 0) std::this_thread::sleep_for(kBetween);
    if (::flock(lock_.get(), LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK) return true;
  }
  return false;
}

std::string OutputDirectory::follow() {
  struct stat held {
  }, named{};
  if (!lock_.is_open() || ::fstat(lock_.get(), &held) != 0) return "";
  if (::stat(path_.c_str(), &named) == 0 && named.st_dev == held.st_dev && named.st_ino == held.st_ino)
    return "";
  const char* const what = held.st_nlink == 0 ? "removed" : "moved";
  std::error_code failed;  // the next write says what is wrong
  base::end_of_links(path_);
  fs::create_directories(path_, failed);
  base::Descriptor made_again(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!made_again.is_open()) return "";
  lock_ = std::move(made_again);
  if (!lock_it())
    base::fail(
        ErrorKind::data,
        "--out {}: the directory was {} while this run wrote to it, and another run writes to one of that name "
        "now: this run ends, so that neither writes over the other",
        path_.string(), what);
  return fmt::format(
      "{}: the directory was {} while the run writes to it; from now on its files are in a new one of "
      "that name{}",
      path_.string(), what,
      held.st_nlink == 0 ? ", without what it held" : "; earlier ones are where it was moved to");
}

void require_output_directory(const fs::path& path) {
  base::end_of_links(path);
  std::error_code unknown;
  auto there = fs::absolute(path, unknown);
  while (!base::is_there(there) && there != there.parent_path()) there = there.parent_path();
  const int reason = !base::is_folder(there)                     ? ENOTDIR
                     : ::access(there.c_str(), W_OK | X_OK) != 0 ? errno
                                                                 : 0;
  if (reason != 0)
    base::fail(ErrorKind::data, "--out {}: cannot be written to: {}; give another directory", path.string(),
               std::error_code(reason, std::generic_category()).message());
  if (base::is_folder(path)) const OutputDirectory free(path);  // which makes nothing then
}

OutputDirectory::~OutputDirectory() {
  std::error_code not_empty;
  if (made_ && holds_only_events(path_)) fs::remove(path_ / measure::kEventsFile, not_empty);
  if (made_) fs::remove(path_, not_empty);
}

std::vector<std::string> write_reports(const report::Document& document, const Settings::Report& where) {
  // Checked before any file is written.
  measure::require_output(where.markdown, "--markdown");
  measure::require_output(where.json, "--json");
  measure::require_output(where.html, "--html");
  std::vector<std::string> lines;
  const auto write = [&](const fs::path& file, const char* what, auto text_of) {
    if (file.empty()) return;
    base::write_file(file, text_of(document));
    lines.push_back(what + file.string());
  };
  write(where.markdown, "markdown: ", report::to_markdown);
  write(where.json, "json:     ", report::to_json);
  if (!where.csv.empty()) {
    int tables = 0, plots = 0;
    for (const auto& file : report::csv_files(document)) {
      base::write_file(where.csv / (file.name + ".csv"), file.text);
      ++(file.is_table ? tables : plots);
    }
    lines.push_back(fmt::format("csv:      {} ({} tables, {} plots)", where.csv.string(), tables, plots));
  }
  if (!where.latex.empty()) {
    const auto files = report::latex_files(document);
    for (const auto& file : files) base::write_file(where.latex / (file.name + ".tex"), file.text);
    lines.push_back(fmt::format("latex:    {} ({} tables; tables.tex has them all)", where.latex.string(),
                                files.size() - 1));
  }
  if (!where.figures.empty())
    for (auto& line : write_figures(document, where.figures)) lines.push_back(std::move(line));
  write(where.html, "page:     ", report::to_html);
  return lines;
}

void say_report(const report::Document& document, bool is_whole, Screen& screen) {
  constexpr std::size_t kFewest = 12, kLinesOfScreen = 23;
  const std::size_t used = document.expectations.size();
  const std::size_t lines = used + kFewest > kLinesOfScreen ? kFewest : kLinesOfScreen - used;
  screen.say(is_whole ? report::to_terminal(document, screen.width(), screen.colour())
                      : report::first_screen(document, screen.width(), screen.colour(), lines));
}

int say_expectations(const report::Document& document, Screen& screen) {
  using Verdict = report::Expectation::Verdict;
  const auto& all = document.expectations;
  for (const auto& line : report::lines_of_expectations(all)) screen.say(line);
  const auto failed = std::ranges::count(all, Verdict::fail, &report::Expectation::verdict);
  const auto passed = std::ranges::count(all, Verdict::pass, &report::Expectation::verdict);
  const auto number = std::ssize(all);
  if (passed == number) return 0;
  const int code = failed > 0 ? kDoesNotHold : kUndecided;
  screen.say(failed > 0 ? fmt::format("{} of {} expectations failed: exit code {}", failed, number, code)
                        : fmt::format("{} of {} expectations not known to hold: exit code {}",
                                      number - passed, number, code));
  return code;
}

RecordsRead read_records(const std::vector<fs::path>& paths) {
  RecordPaths found = look_for_records(paths);
  const std::size_t repeated = drop_repeated(found.records);
  drop_repeated(found.lost);
  RecordsRead read;
  Copies copies;
  read.records = read_once(found.records, copies);
  read.remarks = remarks_on(repeated, copies, found);
  std::stable_sort(read.records.begin(), read.records.end(),
                   [](const auto& a, const auto& b) { return a.created < b.created; });
  return read;
}

}  // namespace paceline::cli
