/// Reads what nccl-tests write: JSON (-J, version 3), and text with one or two measurements a line.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <string>
#include <utility>

#include "base/error.h"
#include "table/import/import.h"
#include "table/table.h"

namespace paceline::table {

// Converts a line of nccl-tests' output to a row of a table, for the readers of its text and JSON.

struct NcclLine {
  std::string collective;    ///< "all_reduce"; "" if unknown
  std::string type;          ///< "float", "bfloat16"
  std::string redop, root;   ///< "sum", "0"; "" if there is none
  std::string bytes;         ///< as printed
  std::string seconds_us;    ///< as printed, in microseconds
  std::string algbw, busbw;  ///< as printed, GB/s; "" or "N/A" if there is none
  std::string wrong;         ///< wrong elements; "N/A" if not checked
  bool in_place = false;
  int ranks = 0, hosts = 0;  ///< 0: unknown
};

/// Errors   Error(usage): the end of a sentence about an invalid value
[[nodiscard]] Row row_of(const NcclLine& line);

/// Bytes of an element of one of NCCL's types; 0 for other words.
[[nodiscard]] int element_bytes(std::string_view type);

namespace {

/// "12.34" us -> "12.34e-6": the digits stay.
std::string micro(const std::string& text) {
  const auto exponent = text.find_first_of("eE");
  if (exponent == std::string::npos) return text + "e-6";
  int power = 0;
  try {
    power = std::stoi(text.substr(exponent + 1));
  } catch (const std::exception&) {
    base::fail(base::ErrorKind::usage, "'{}' is not a time", text);
  }
  return fmt::format("{}e{}", text.substr(0, exponent), power - 6);
}

bool is_figure(const std::string& text) { return !text.empty() && read_number(text).has_value(); }

using nlohmann::json;

/// The time of the slowest process in each iteration, in microseconds; empty if they were not kept.
std::vector<double> slowest_iterations(const json& result, const char* key) {
  std::vector<double> all;
  const auto& kept = member(result, key);
  for (const char* const name : {"per_process_max_times_us", "times_us"}) {
    const auto& times = member(kept, name);
    if (!times.is_array() || times.empty()) continue;
    for (const auto& one : times) {
      double most = one.is_number() ? one.get<double>() : 0;
      if (one.is_array())
        for (const auto& process : one)
          most = std::max(most, process.is_number() ? process.get<double>() : 0);
      if (most > 0 && std::isfinite(most)) all.push_back(most);
    }
    if (!all.empty()) return all;
  }
  return all;
}

void set_iterations(Row& row, std::vector<double> times) {
  if (times.size() < 2) return;
  std::ranges::sort(times);
  const auto median = (times[(times.size() - 1) / 2] + times[times.size() / 2]) / 2;
  double mean = 0, squares = 0;
  for (const double one : times) mean += one / static_cast<double>(times.size());
  for (const double one : times) squares += (one - mean) * (one - mean);
  row.set("time_s", median * 1e-6);
  row.set("communication_s", median * 1e-6);
  row.set("statistic", "median");
  row.set("spread_s", std::sqrt(squares / static_cast<double>(times.size() - 1)) * 1e-6);
  row.set("spread_is", "sd");
  row.set("repeats", static_cast<double>(times.size()));
}

std::string collective_of(const json& file) {
  const auto& arguments = member(file, "args");
  if (!arguments.is_array() || arguments.empty() || !arguments.front().is_string()) return "";
  const auto program = std::filesystem::path(arguments.front().get<std::string>()).filename().string();
  const auto end = program.find("_perf");
  return end == std::string::npos ? "" : program.substr(0, end);
}

/// The row for one measurement of one size; nullopt if it was not made.
std::optional<Row> measurement(const json& result, NcclLine line, const char* key, const char* iterations) {
  const auto& one = member(result, key);
  if (!one.is_object()) return std::nullopt;
  line.in_place = std::string_view(key) == "in_place";
  if (one.contains("cpu_time"))
    base::fail(base::ErrorKind::usage,
               "the times are those of the processor (-C), not of the collective; measure without it");
  const auto time = text_at(one, "time");
  if (!time || !read_number(*time)) return std::nullopt;
  line.seconds_us = *time;
  line.busbw = text_at(one, "bus_bw").value_or("");
  line.wrong = text_at(one, "nwrong").value_or("");
  auto row = row_of(line);
  auto times = slowest_iterations(result, iterations);
  if (times.size() > 1) {
    // The printed bandwidth belongs to the mean and does not match a median.
    row.set("claimed_bandwidth", "");
    row.set("bandwidth_unit", "");
    row.set("bandwidth_is", "");
    set_iterations(row, std::move(times));
  }
  return row;
}

Table read_nccl_json(std::span<const std::filesystem::path> files, const GivenFacts&) {
  const auto file = read_json(files.front());
  Table table{.where = files.front().string()};
  std::set<std::string> hosts;
  int ranks = 0;
  std::string device;
  for (const auto& one : member(file, "devices")) {
    ++ranks;
    if (const auto host = text_at(one, "hostname")) hosts.insert(*host);
    if (const auto name = text_at(one, "device_info")) device = *name;
  }
  NcclLine common{.collective = collective_of(file), .ranks = ranks, .hosts = static_cast<int>(hosts.size())};
  for (const auto& result : member(file, "results")) {
    common.bytes = text_at(result, "size").value_or("");
    common.type = text_at(result, "type").value_or("");
    if (!read_number(common.bytes)) continue;
    try {
      for (const auto& [key, iterations] :
           {std::pair{"out_of_place", "out_of_place_per_iter"}, std::pair{"in_place", "in_place_per_iter"}}) {
        auto row = measurement(result, common, key, iterations);
        if (!row) continue;
        if (!device.empty()) row->set("device", device);
        if (const auto warmup = number_at(member(file, "config"), "warmup_iters"); warmup && *warmup >= 0)
          row->set("warmup", std::round(*warmup));
        table.rows.push_back(std::move(*row));
      }
    } catch (const base::Error& error) {
      base::fail(base::ErrorKind::data, "{}: size {}: {}", table.where, common.bytes, error.what());
    }
  }
  if (table.rows.empty())
    base::fail(base::ErrorKind::data, "{}: no result has a time; the test was ended early", table.where);
  if (const auto average = text_at(file, "average_bus_bandwidth");
      average && read_number(*average) && ranks > 0) {
    Row row;
    row.set("run", "average");
    row.set("program", "nccl-tests");
    row.set("workers", ranks);
    row.set("claimed_bandwidth", *average);
    row.set("bandwidth_unit", "GB/s");
    row.set("bandwidth_is", "busbw");
    row.set("statistic", "mean");
    table.rows.push_back(row);
  }
  table.notes.push_back(
      "the file does not name the algorithm that NCCL chose; it holds the environment, which was not "
      "copied, since it may hold secrets");
  return table;
}

bool is_nccl_json(std::string_view head) {
  return head.find("\"nccl_version\"") != std::string_view::npos &&
         head.find('{') < head.find("\"nccl_version\"");
}

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

int element_bytes(std::string_view type) {
  constexpr std::array<std::pair<std::string_view, int>, 12> kTypes{{{"int8", 1},
                                                                     {"uint8", 1},
                                                                     {"int32", 4},
                                                                     {"uint32", 4},
                                                                     {"int64", 8},
                                                                     {"uint64", 8},
                                                                     {"half", 2},
                                                                     {"bfloat16", 2},
                                                                     {"float", 4},
                                                                     {"double", 8},
                                                                     {"fp8e4m3", 1},
                                                                     {"fp8e5m2", 1}}};
  for (const auto& [name, bytes] : kTypes)
    if (name == type) return bytes;
  return type.starts_with("f8") ? 1 : 0;
}

Row row_of(const NcclLine& line) {
  Row row;
  row.set("run", fmt::format("{}{} {} bytes", line.collective.empty() ? "" : line.collective + " ",
                             line.in_place ? "in place" : "out of place", line.bytes));
  row.set("program", "nccl-tests");
  if (line.ranks > 0) row.set("workers", static_cast<double>(line.ranks));
  if (line.hosts > 0) row.set("nodes", static_cast<double>(line.hosts));
  row.set("message_bytes", line.bytes);
  if (const int bytes = element_bytes(line.type); bytes > 0) row.set("element_bytes", bytes);
  if (!is_figure(line.seconds_us))
    base::fail(base::ErrorKind::usage, "'{}' is not a time in microseconds", line.seconds_us);
  row.set("time_s", micro(line.seconds_us));
  row.set("time_of", "step");
  row.set("covers", "communication");
  row.set("communication_s", micro(line.seconds_us));
  row.set("statistic", "mean");
  row.set("spread_s", "unknown");
  row.set("algorithm", "unknown");
  const bool is_all_reduce = line.collective.empty() || line.collective == "all_reduce";
  if (is_figure(line.busbw) && is_all_reduce) {
    row.set("claimed_bandwidth", line.busbw);
    row.set("bandwidth_unit", "GB/s");
    row.set("bandwidth_is", "busbw");
  }
  if (is_figure(line.wrong)) row.set("wrong_elements", line.wrong);
  row.settings["in_place"] = line.in_place ? "yes" : "no";
  if (!line.collective.empty()) row.settings["collective"] = line.collective;
  if (!line.type.empty()) row.settings["type"] = line.type;
  // A sweep over operations holds the same sizes for each of them.
  if (!line.redop.empty()) row.settings["redop"] = line.redop;
  if (!line.root.empty()) row.settings["root"] = line.root;
  return row;
}

Importer nccl_tests_json() {
  return {.name = "nccl-tests JSON", .is_it = is_nccl_json, .read = read_nccl_json};
}

Importer nccl_tests_text() { return {.name = "nccl-tests text", .is_it = is_text, .read = read_text}; }

}  // namespace paceline::table
