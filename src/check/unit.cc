#include "check/unit.h"

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

}  // namespace paceline::check
