/// Which columns of a log fill which columns of a table, and in which units.

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "table/import/import.h"
#include "table/import/metrics_log.h"

namespace paceline::table {
namespace {

using base::ErrorKind;

constexpr Column kMapped[] = {Column("loss"),   Column("accuracy"),      Column("updates"),   Column("steps"),
                              Column("time_s"), Column("learning_rate"), Column("rate_per_s")};

/// The column that the user names: its number, and the unit in "top1%" or "time[min]".
std::pair<std::size_t, std::string> named_source(const MetricLog& log, std::string_view column,
                                                 const std::string& asked, const std::string& where) {
  const auto find = [&](std::string_view name) {
    auto found = std::ranges::find(log.names, name);
    if (found == log.names.end())
      found = std::ranges::find_if(log.names, [&](const std::string& one) {
        return base::lower_case(one) == base::lower_case(std::string(name));
      });
    return static_cast<std::size_t>(found - log.names.begin());
  };
  if (const auto at = find(asked); at < log.names.size()) return {at, ""};
  const auto open = asked.rfind('[');
  if (asked.ends_with('%')) {
    if (const auto at = find(trimmed(std::string_view(asked).substr(0, asked.size() - 1)));
        at < log.names.size())
      return {at, "%"};
  } else if (asked.ends_with(']') && open != std::string::npos) {
    if (const auto at = find(trimmed(std::string_view(asked).substr(0, open))); at < log.names.size())
      return {at, asked.substr(open + 1, asked.size() - open - 2)};
  }
  base::fail(ErrorKind::usage, "--set {}={}: {} has no such column{}", column, asked, where,
             base::suggestion(asked, log.names));
}

/// How cells of a column in `unit` are read.
OwnHeading heading_in(Column column, const std::string& asked, const std::string& unit,
                      bool has_decimal_commas) {
  OwnHeading heading;
  const bool is_part = column == Column("accuracy"),
             is_timed = is_time(column.name()) || column == Column("rate_per_s");
  if (!unit.empty()) {
    heading = own_heading_of(fmt::format("{} ({})",
                                         is_part    ? "accuracy"
                                         : is_timed ? column == Column("time_s") ? "time" : "throughput"
                                                    : "",
                                         unit));
    const bool is_known =
        is_part ? unit == "%" || unit == "1" : is_timed && !heading.is_unknown && heading.factor > 0;
    if (!is_known)
      base::fail(ErrorKind::usage, "--set {}={}: the unit must be {}, got '{}'", column.name(), asked,
                 is_part                      ? "% or 1"
                 : column == Column("time_s") ? "s, ms, min or h"
                 : is_timed                   ? "images/s or images/min"
                                              : "left out, because the column has none",
                 unit);
  }
  heading.ours = std::string(column.name());
  heading.has_decimal_comma = has_decimal_commas;
  return heading;
}

/// The unit in the name of a column that is not ours: "time (ms)", "epoch_min", "acc %"; "" if there is none.
std::string unit_in(Column column, std::string_view name) {
  if (column == Column("accuracy")) return name.find('%') == std::string_view::npos ? "" : "%";
  const auto begin = name.find_last_of("([_ ");
  if (column != Column("time_s") || begin == std::string_view::npos) return "";
  auto unit = name.substr(begin + 1);
  unit = unit.substr(0, unit.find_first_of(")]"));
  const auto heading = own_heading_of(fmt::format("time ({})", unit));
  return heading.factor > 0 && !heading.is_unknown ? std::string(unit) : "";
}

}  // namespace

Sources sources_of(const MetricLog& log, const GivenFacts& given, Table& table) {
  Sources sources;
  for (const auto column : kMapped) {
    const std::string name(column.name());
    const auto found = given.find(name);
    if (found != given.end() && !read_number(found->second)) {
      const auto& asked = found->second;
      table.taken.insert(name);
      auto [at, unit] = named_source(log, name, asked, table.where);
      if (unit.empty()) unit = unit_in(column, log.names[at]);
      sources[at].push_back({column, unit, heading_in(column, asked, unit, log.has_decimal_commas)});
      continue;
    }
    for (std::size_t at = 0; at < log.names.size(); ++at)
      if (base::lower_case(log.names[at]) == name) {
        sources[at].push_back({column, "", heading_in(column, "", "", log.has_decimal_commas)});
        break;
      }
  }
  return sources;
}

}  // namespace paceline::table
