/// Reads the JSON of nccl-tests (-J, version 3), and makes rows of its measurements and of those in text.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>
#include <utility>

#include "base/error.h"
#include "table/import/import.h"

namespace paceline::table {

namespace {

/// "12.34" us -> "12.34e-6": the digits stay.
std::string micro(const std::string& text) {
  const auto exponent = text.find_first_of("eE");
  if (exponent == std::string::npos) return text + "e-6";
  const bool has_plus = text.find('+', exponent) == exponent + 1;
  const auto power = base::to_number<int>(std::string_view(text).substr(exponent + (has_plus ? 2 : 1)));
  if (!power) base::fail(base::ErrorKind::usage, "'{}' is not a time", text);
  return fmt::format("{}e{}", text.substr(0, exponent), *power - 6);
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

void set_iterations(Row& row, const std::vector<double>& times) {
  const auto [median, sd] = scatter_of(times);
  row.set("time_s", median * 1e-6);
  row.set("communication_s", median * 1e-6);
  row.set("statistic", "median");
  row.set("spread_s", sd * 1e-6);
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
  const auto times = slowest_iterations(result, iterations);
  if (times.size() > 1) {
    // The printed bandwidth belongs to the mean and does not match a median.
    row.set("claimed_bandwidth", "");
    row.set("bandwidth_unit", "");
    row.set("bandwidth_is", "");
    set_iterations(row, times);
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
      average && read_number(*average) && ranks > 0)
    table.rows.push_back(row_of_average(ranks, *average));
  table.notes.push_back(
      "the file does not name the algorithm that NCCL chose; it holds the environment, which was not "
      "copied, since it may hold secrets");
  return table;
}

bool is_nccl_json(std::string_view head) {
  return head.find("\"nccl_version\"") != std::string_view::npos &&
         head.find('{') < head.find("\"nccl_version\"");
}

}  // namespace

int element_bytes(std::string_view type) {
  if (is_any(type, {"int8", "uint8", "fp8e4m3", "fp8e5m2"}) || type.starts_with("f8")) return 1;
  if (is_any(type, {"half", "bfloat16"})) return 2;
  if (is_any(type, {"int32", "uint32", "float"})) return 4;
  return is_any(type, {"int64", "uint64", "double"}) ? 8 : 0;
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

Row row_of_average(int workers, const std::string& busbw) {
  Row row;
  row.set("run", "average");
  row.set("program", "nccl-tests");
  row.set("workers", workers);
  row.set("claimed_bandwidth", busbw);
  row.set("bandwidth_unit", "GB/s");
  row.set("bandwidth_is", "busbw");
  row.set("statistic", "mean");
  return row;
}

Importer nccl_tests_json() {
  return {.name = "nccl-tests JSON", .is_it = is_nccl_json, .read = read_nccl_json};
}

}  // namespace paceline::table
