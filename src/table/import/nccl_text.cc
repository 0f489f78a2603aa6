/// Reads the text that nccl-tests print (`all_reduce_perf` and similar programs), with one or two
/// measurements per line.

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "table/import/gz_file.h"
#include "table/import/import.h"
#include "table/import/nccl.h"
#include "table/words.h"

namespace paceline::table {
namespace {

using base::ErrorKind;

/// Removes what a launcher wrote in front of a line: "[1,0]<stdout>:" of mpirun, "0: " of srun.
std::string_view without_launcher(std::string_view line) {
  line.remove_prefix(std::min(line.size(), line.find_first_not_of(" \t")));  // indentation of a quoted log
  if (line.starts_with('[')) {
    const auto end = line.find(">:");
    if (end != std::string_view::npos && end < 40) line.remove_prefix(end + 2);
  }
  const auto colon = line.find(": ");
  if (colon != std::string_view::npos && colon > 0 &&
      line.substr(0, colon).find_first_not_of("0123456789") == std::string_view::npos)
    line.remove_prefix(colon + 2);
  return line;
}

/// "# Rank 3 Group 0 Pid 12 on host-a device 3 [0x8a] NAME": the host; "" if it is not such a line.
std::string host_of(const std::vector<std::string_view>& words) {
  if (words.size() < 4 || words[0] != "#" || words[1] != "Rank") return "";
  for (std::size_t i = 2; i + 1 < words.size(); ++i)
    if (words[i] == "on") return std::string(words[i + 1]);
  return "";
}

/// The output of one test. A log may hold several, of different collectives or of the same one.
struct Test {
  std::string collective;
  std::set<std::string> hosts;
  int ranks = 0;
  std::string average;
  std::vector<std::pair<NcclLine, std::size_t>> lines;
};

struct Reading {
  std::vector<Test> tests{1};
  std::vector<std::string_view> columns;  ///< of the last header, without "#"
  bool has_extremes = false;

  Test& test() { return tests.back(); }
  void begin_test() {
    if (!test().lines.empty()) tests.emplace_back();
  }
};

void take_comment(Reading& reading, std::string_view line, const std::vector<std::string_view>& words) {
  if (const auto host = host_of(words); !host.empty()) {
    reading.begin_test();
    ++reading.test().ranks;
    reading.test().hosts.insert(host);
  }
  if (words.size() > 3 && words[1] == "Avg" && words[2] == "bus") reading.test().average = words.back();
  if (words.size() > 1 && words[1] == "nThread") reading.begin_test();
  if (words.size() > 4 && words[1] == "size" && words[2] == "count")
    reading.columns.assign(words.begin() + 1, words.end());
  for (const char* const name : {"all_reduce", "all_gather", "reduce_scatter", "broadcast", "alltoall",
                                 "reduce", "gather", "scatter", "sendrecv"}) {
    if (line.find(std::string(name) + "_perf") == std::string_view::npos) continue;
    // After the figures the name is that of the test that has ended, or of the next.
    if (line.find("concluded") == std::string_view::npos) {
      reading.begin_test();
      reading.test().collective = name;
    } else if (reading.test().collective.empty()) {
      reading.test().collective = name;
    }
    break;
  }
}

bool is_column(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::ranges::find(names, name) != names.end();
}

/// A line of figures: size, count, type, redop, root, and a group of columns that begins with time for each
/// measurement.
void take_figures(Reading& reading, const std::vector<std::string_view>& words, std::size_t number,
                  const std::string& where) {
  const auto& columns = reading.columns;
  if (columns.empty()) return;
  if (words.size() != columns.size())
    base::fail(ErrorKind::data,
               "{}:{}: there are {} figures under {} columns; the output was cut or mixed with another",
               where, number, words.size(), columns.size());
  NcclLine common{};
  bool began = false;
  int measurement = 0;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const std::string text(words[i]);
    if (columns[i] == "size") common.bytes = text;
    if (columns[i] == "type") common.type = text;
    if (columns[i] == "time") {
      reading.test().lines.emplace_back(common, number);
      reading.test().lines.back().first.in_place = measurement++ > 0;
      reading.test().lines.back().first.seconds_us = text;
      began = true;
    }
    if (!began) continue;
    auto& line = reading.test().lines.back().first;
    if (columns[i] == "algbw") line.algbw = text;
    if (columns[i] == "busbw") line.busbw = text;
    if (is_column(columns[i], {"#wrong", "wrong", "error"})) line.wrong = columns[i] == "error" ? "" : text;
    if (is_column(columns[i], {"min", "max", "tmin", "tmax", "p50", "p99"})) reading.has_extremes = true;
  }
}

/// The number of this run if the log holds several runs of the same test: 1, 2, ...; 0 if it holds one.
int repeat_of(const Reading& reading, std::size_t t) {
  int all = 0, before = 0;
  for (std::size_t k = 0; k < reading.tests.size(); ++k) {
    const bool is_same = reading.tests[k].collective == reading.tests[t].collective &&
                         reading.tests[k].ranks == reading.tests[t].ranks && !reading.tests[k].lines.empty();
    all += is_same ? 1 : 0;
    before += is_same && k < t ? 1 : 0;
  }
  return all > 1 ? before + 1 : 0;
}

void add_rows(Table& table, Reading& reading, std::size_t t) {
  auto& test = reading.tests[t];
  const int repeat = repeat_of(reading, t);
  for (auto& [line, at] : test.lines) {
    line.collective = test.collective;
    line.ranks = test.ranks;
    line.hosts = static_cast<int>(test.hosts.size());
    try {
      table.rows.push_back(row_of(line));
    } catch (const base::Error& error) {
      base::fail(ErrorKind::data, "{}:{}: {}", table.where, at, error.what());
    }
    table.rows.back().line = at;
    if (repeat > 0) table.rows.back().set("repeat", repeat);
  }
  if (!read_number(test.average) || test.ranks == 0 || test.lines.empty()) return;
  Row row;
  row.set("run", "average");
  row.set("program", "nccl-tests");
  row.set("workers", test.ranks);
  if (repeat > 0) row.set("repeat", repeat);
  row.set("claimed_bandwidth", test.average);
  row.set("bandwidth_unit", "GB/s");
  row.set("bandwidth_is", "busbw");
  row.set("statistic", "mean");
  // Each of several tests in one log has its own average.
  if (reading.tests.size() > 1 && !test.collective.empty()) row.settings["collective"] = test.collective;
  table.rows.push_back(row);
}

Table read_text(std::span<const std::filesystem::path> files, const GivenFacts&) {
  const auto where = files.front().string();
  const auto text = content_of(files.front());
  Reading reading;
  std::size_t number = 0;
  for (std::string_view rest = text; !rest.empty();) {
    const auto line = without_launcher(take_line(rest));
    ++number;
    const auto words = split_words(line);
    if (words.empty()) continue;
    if (words[0].starts_with('#') && words[0] == "#")
      take_comment(reading, line, words);
    else if (words[0].find_first_not_of("0123456789") == std::string_view::npos)
      take_figures(reading, words, number, where);
    else
      take_comment(reading, line, words);  // a command line, perhaps
  }
  Table table{.where = where};
  for (std::size_t t = 0; t < reading.tests.size(); ++t) add_rows(table, reading, t);
  if (table.rows.empty())
    base::fail(ErrorKind::data, "{}: the output of nccl-tests has no figures; it was cut", where);
  table.notes.push_back(
      "times of nccl-tests are means over iterations and ranks: their spread is not known, nor which algorithm was "
      "chosen");
  if (std::ranges::any_of(reading.tests,
                          [](const Test& one) { return one.ranks == 0 && !one.lines.empty(); }))
    table.notes.push_back(
        "no line names a rank: the number of workers is not known; --set workers=N says it");
  return table;
}

bool is_text(std::string_view head) {
  if (head.find("algbw") == std::string_view::npos || head.find("busbw") == std::string_view::npos)
    return false;
  return head.find("redop") != std::string_view::npos && !head.starts_with('{');
}

}  // namespace

Importer nccl_tests_text() { return {.name = "nccl-tests text", .is_it = is_text, .read = read_text}; }

}  // namespace paceline::table
