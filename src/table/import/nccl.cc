#include "table/import/nccl.h"

#include <fmt/format.h>

#include <array>
#include <utility>

#include "base/error.h"

namespace paceline::table {
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
  return row;
}

}  // namespace paceline::table
