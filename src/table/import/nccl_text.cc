/// Reads the text that nccl-tests print, with one or two measurements a line, wherever it stands in a log and
/// whatever a launcher wrote before each line.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "table/import/import.h"

namespace paceline::table {
namespace {

using base::ErrorKind;
using Words = std::vector<std::string_view>;

/// The output of one test. A log may hold several, of different collectives or of the same one.
struct Test {
  std::string collective;
  std::set<std::string> hosts;
  /// By rank the different lines that name it. Several: programs without MPI, each a run of its own, that a
  /// launcher started side by side and whose lines it mixed.
  std::map<int, std::set<std::string>> ranks;
  std::vector<std::string> averages;
  std::vector<std::pair<NcclLine, std::size_t>> lines;

  /// How many runs are mixed in it; 0 if they are of different sizes.
  [[nodiscard]] std::size_t runs() const {
    std::size_t least = ranks.empty() ? 1 : ranks.begin()->second.size(), most = least;
    for (const auto& [rank, texts] : ranks) {
      least = std::min(least, texts.size());
      most = std::max(most, texts.size());
    }
    return least == most ? most : 0;
  }
  /// Workers of each run; 0 if they are not known, since no line names a rank, or not all do.
  [[nodiscard]] int workers() const {
    const bool has_all = !ranks.empty() && ranks.rbegin()->first + 1 == static_cast<int>(ranks.size());
    return has_all && runs() > 0 ? static_cast<int>(ranks.size()) : 0;
  }
};

struct Reading {
  std::vector<Test> tests{1};
  std::vector<std::string> columns;  ///< of the last header, without "#"
  std::size_t header = 0;            ///< its line
  std::string behind_header;         ///< the first line behind it that is neither a comment nor figures

  Test& test() { return tests.back(); }
  void begin_test() {
    if (!test().lines.empty()) tests.emplace_back();
  }
};

/// The place of `word` where it stands behind a "#", which may follow a launcher's text without a blank.
std::size_t behind_mark(const Words& words, std::string_view word) {
  for (std::size_t i = 1; i < words.size(); ++i)
    if (words[i] == word && words[i - 1].ends_with('#')) return i;
  return 0;
}

/// "#  Rank  3 Group  0 Pid   12 on  host-a device  3 [0x8a] NAME"
void take_rank(Reading& reading, const Words& words, std::size_t at) {
  constexpr std::size_t kDigits = 6;
  if (at + 1 >= words.size() || !is_whole(words[at + 1]) || words[at + 1].size() > kDigits) return;
  std::string text, host;
  for (std::size_t i = at; i < words.size(); ++i) {
    text += std::string(words[i]) + ' ';
    if (words[i] == "on" && i + 1 < words.size() && host.empty()) host = words[i + 1];
  }
  if (host.empty()) return;
  reading.begin_test();
  reading.test().ranks[std::stoi(std::string(words[at + 1]))].insert(text);
  reading.test().hosts.insert(host);
}

/// The name of the test in a command, or in "# Collective test starting: all_reduce_perf".
void take_name(Reading& reading, std::string_view line) {
  if (line.find("_perf") == std::string_view::npos) return;
  for (const char* const name : {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "alltoall",
                                 "reduce", "gather", "scatter", "sendrecv"}) {
    if (line.find(std::string(name) + "_perf") == std::string_view::npos) continue;
    // After the figures the name is that of the test that has ended, or of the next.
    const bool has_ended = line.find("concluded") != std::string_view::npos;
    if (!has_ended) reading.begin_test();
    if (!has_ended || reading.test().collective.empty()) reading.test().collective = name;
    return;
  }
}

/// Whether the line is one of nccl-tests' own.
bool take_comment(Reading& reading, const Words& words, std::size_t number) {
  if (const auto at = behind_mark(words, "size");
      at > 0 && at + 2 < words.size() && words[at + 1] == "count") {
    reading.columns.assign(words.begin() + static_cast<std::ptrdiff_t>(at), words.end());
    reading.header = number;
    reading.behind_header.clear();
  } else if (const auto rank = behind_mark(words, "Rank"); rank > 0) {
    take_rank(reading, words, rank);
  } else if (const auto average = behind_mark(words, "Avg");
             average > 0 && average + 2 < words.size() && words[average + 1] == "bus") {
    reading.test().averages.emplace_back(words.back());
  } else if (behind_mark(words, "nThread") > 0) {
    reading.begin_test();
  } else {
    return std::ranges::any_of(words, [](std::string_view word) { return word.ends_with('#'); });
  }
  return true;
}

/// Whether size, count and type begin at `at`.
bool begins_figures(const Words& words, std::size_t at) {
  return at + 2 < words.size() && is_whole(words[at]) && is_whole(words[at + 1]) &&
         element_bytes(words[at + 2]) > 0;
}

/// A line that ends with figures: size, count, type, redop, root, and a group of columns that begins with
/// time for each measurement. False: it does not.
bool take_figures(Reading& reading, const Words& words, std::size_t number, const std::string& where) {
  const auto& columns = reading.columns;
  if (columns.empty() || words.size() < 3) return false;
  const auto skipped = words.size() < columns.size() ? words.size() : words.size() - columns.size();
  const auto time = static_cast<std::size_t>(std::ranges::find(columns, "time") - columns.begin());
  const bool is_other_type = skipped + time < words.size() && time > 2 && is_whole(words[skipped]) &&
                             is_whole(words[skipped + 1]) && !read_number(words[skipped + 2]) &&
                             read_number(words[skipped + time]);
  if (!begins_figures(words, skipped) && !is_other_type) {
    for (std::size_t at = 0; at + 2 < words.size(); ++at)
      if (begins_figures(words, at))
        base::fail(ErrorKind::data,
                   "{}:{}: there are {} figures under {} columns; the output was cut or mixed with another",
                   where, number, words.size() - at, columns.size());
    return false;
  }
  NcclLine common{};
  bool began = false;
  int measurement = 0;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::string text(words[skipped + i]);
    if (columns[i] == "size") common.bytes = text;
    if (columns[i] == "type") common.type = text;
    if (columns[i] == "redop" && text != "none") common.redop = text;
    if (columns[i] == "root" && text != "-1") common.root = text;
    if (columns[i] == "time") {
      reading.test().lines.emplace_back(common, number);
      reading.test().lines.back().first.in_place = measurement++ > 0;
      reading.test().lines.back().first.seconds_us = text;
      began = true;
    }
    if (!began) continue;
    auto& line = reading.test().lines.back().first;
    if (columns[i] == "busbw") line.busbw = text;
    if (is_any(columns[i], {"#wrong", "wrong", "error"})) line.wrong = columns[i] == "error" ? "" : text;
  }
  return true;
}

/// What tests have in common that measured the same.
std::string same_test(const Test& test) { return fmt::format("{} {}", test.collective, test.workers()); }

/// What rows of them have in common that measured the same.
std::string same_row(const std::string& test, const NcclLine& line) {
  return fmt::format("{}|{}|{}|{}|{}|{}", test, line.bytes, line.type, line.redop, line.root, line.in_place);
}

/// The tests of which a size was measured several times: their rows say which time it is.
std::set<std::string> repeated_tests(const Reading& reading) {
  std::set<std::string> seen, repeated;
  for (const auto& test : reading.tests) {
    const auto name = same_test(test);
    for (const auto& [line, number] : test.lines)
      if (!seen.insert(same_row(name, line)).second) repeated.insert(name);
  }
  return repeated;
}

void add_rows(Table& table, Reading& reading) {
  const auto repeated = repeated_tests(reading);
  std::map<std::string, int> times;
  for (auto& test : reading.tests) {
    const auto name = same_test(test);
    const bool has_repeats = repeated.contains(name);
    const int workers = test.workers(), hosts = test.runs() == 1 ? static_cast<int>(test.hosts.size()) : 0;
    for (auto& [line, at] : test.lines) {
      const int time = ++times[same_row(name, line)];
      line.collective = test.collective;
      line.ranks = workers;
      line.hosts = hosts;
      try {
        table.rows.push_back(row_of(line));
      } catch (const base::Error& error) {
        base::fail(ErrorKind::data, "{}:{}: {}", table.where, at, error.what());
      }
      table.rows.back().line = at;
      if (has_repeats) table.rows.back().set("repeat", time);
    }
    // Of mixed runs nobody knows which lines an average is of.
    if (test.averages.size() != 1 || test.runs() != 1 || workers == 0 || test.lines.empty() ||
        !read_number(test.averages.front()))
      continue;
    table.rows.push_back(row_of_average(workers, test.averages.front()));
    // Each of several tests in one log has its own average.
    if (reading.tests.size() > 1 && !test.collective.empty())
      table.rows.back().settings["collective"] = test.collective;
    if (has_repeats) table.rows.back().set("repeat", ++times["average " + name]);
  }
}

/// What is not known about the workers of a test.
std::string note_on_ranks(const Test& test) {
  if (!test.lines.empty() && test.runs() == 1 && test.averages.size() > 1)
    return fmt::format(
        "{} averages follow the figures of one test: lines of several runs are mixed, and averages are left out",
        test.averages.size());
  if (test.lines.empty() || (test.runs() == 1 && test.workers() > 0)) return "";
  if (test.ranks.empty())
    return "no line names a rank: the number of workers is not known; --set workers=N says it";
  if (test.runs() == 1) {
    int missing = 0;
    for (const auto& [rank, texts] : test.ranks) missing += rank == missing ? 1 : 0;
    return fmt::format(
        "of ranks up to {} no line names rank {}: the number of workers is not known; --set workers=N says it",
        test.ranks.rbegin()->first, missing);
  }
  const auto cause =
      "as where nccl-tests were built without MPI=1 and a launcher started several of them: which line is of which is not "
      "known, and averages are left out";
  if (test.runs() == 0)
    return fmt::format(
        "some ranks are named several times: runs of different sizes are mixed, {}; the number of workers "
        "is not known",
        cause);
  return fmt::format("each rank is named {0} times: these are {0} runs of {1} each and not one, {2}",
                     test.runs(), base::counted(test.ranks.size(), "worker"), cause);
}

void add_notes(Table& table, const Reading& reading) {
  table.notes.emplace_back(
      "times of nccl-tests are means over iterations and ranks: their spread is not known, nor which algorithm was "
      "chosen");
  for (const auto& test : reading.tests)
    if (auto note = note_on_ranks(test);
        !note.empty() && std::ranges::find(table.notes, note) == table.notes.end())
      table.notes.push_back(std::move(note));
}

[[noreturn]] void fail_without_rows(const Reading& reading, const std::string& where) {
  if (reading.header == 0)
    base::fail(ErrorKind::data,
               "{}: it names columns of nccl-tests, but has no line '# size count type ...' above figures",
               where);
  base::fail(ErrorKind::data, "{}:{}: no figures follow the columns of nccl-tests{}", where, reading.header,
             reading.behind_header.empty()
                 ? ": the log ends; was the test ended early?"
                 : fmt::format("; the next line is '{}', which is not understood", reading.behind_header));
}

Table read_text(std::span<const std::filesystem::path> files, const GivenFacts&) {
  const auto where = files.front().string();
  const auto text = plain_log(content_of(files.front()));
  Reading reading;
  std::size_t number = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const auto line = take_line(rest);
    ++number;
    const auto words = split_words(line);
    if (words.empty() || take_figures(reading, words, number, where)) continue;
    if (take_comment(reading, words, number)) {
      take_name(reading, line);
      continue;
    }
    take_name(reading, line);  // a command, perhaps
    if (reading.header > 0 && reading.behind_header.empty()) reading.behind_header = shown_line(line);
  }
  Table table{.where = where};
  add_rows(table, reading);
  if (table.rows.empty()) fail_without_rows(reading, where);
  add_notes(table, reading);
  return table;
}

bool is_text(std::string_view text) {
  return !text.starts_with('{') && text.find("algbw") != std::string_view::npos &&
         text.find("busbw") != std::string_view::npos && text.find("redop") != std::string_view::npos;
}

}  // namespace

Importer nccl_tests_text() {
  return {.name = "nccl-tests text", .is_it = is_text, .read = read_text, .is_in_logs = true};
}

}  // namespace paceline::table
