#include "check/rule.h"

#include <cmath>

namespace paceline::check {

std::optional<double> bytes_per_s(std::string_view unit) {
  double factor = 1;
  if (unit.empty()) return std::nullopt;
  constexpr std::string_view kPrefixes = "KMGT";
  const char first = unit.front() == 'k' ? 'K' : unit.front();
  if (const auto power = kPrefixes.find(first); power != std::string_view::npos) {
    unit.remove_prefix(1);
    const bool is_binary = unit.starts_with('i');
    if (is_binary) unit.remove_prefix(1);
    factor = std::pow(is_binary ? 1024.0 : 1000.0, static_cast<double>(power) + 1);
  }
  if (unit == "B/s" || unit == "byte/s" || unit == "Bytes/s" || unit == "bytes/s" || unit == "Bps")
    return factor;
  if (unit == "bit/s" || unit == "b/s" || unit == "bps" || unit == "bits/s") return factor / 8;
  return std::nullopt;
}

std::optional<Interval> message_bytes(const Row& row) {
  const auto counted = [](const table::Number& number) {
    const bool is_whole = number.text.find_first_of(".eE") == std::string::npos;
    return is_whole ? exactly_one(number.value) : interval_of(number);
  };
  if (const auto bytes = row.number("message_bytes"); bytes && bytes->value > 0) return counted(*bytes);
  const auto parameters = row.number("parameters");
  if (!parameters || parameters->value <= 0) return std::nullopt;
  return times(counted(*parameters), row.value("element_bytes").value_or(4));
}

std::optional<table::Number> communication_time(const Row& row) {
  if (auto time = row.number("communication_s"); time && time->value > 0) return time;
  auto time = row.number("time_s");
  const bool is_message =
      row.knows("message_bytes") && row.text("time_of") == "step" && !row.knows("compute_s");
  return time && time->value > 0 && is_message ? time : std::nullopt;
}

std::optional<Interval> reductions(const Row& row) {
  if (const auto known = steps(row)) return known;
  if (row.text("time_of").empty() && row.knows("message_bytes")) return exactly_one(1);
  return std::nullopt;
}

double ring_factor(double n) { return 2 * (n - 1) / n; }

std::optional<table::Number> claimed_bytes_per_s(const Row& row) {
  auto claim = row.number("claimed_bandwidth");
  const auto unit = bytes_per_s(row.text("bandwidth_unit"));
  if (!claim || !unit) return std::nullopt;
  claim->value *= *unit;
  claim->half_unit *= *unit;
  return claim;
}

}  // namespace paceline::check
