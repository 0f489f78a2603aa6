#include "base/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"
#include "base/text.h"

namespace paceline::base {

double number_in_units(std::string_view text, std::span<const Unit> units) {
  auto unit = text;
  const auto value = take_number<double>(unit);
  const auto found = std::ranges::find(units, unit, &Unit::name);
  if (value && *value >= 0 && std::isfinite(*value) && found != units.end()) return *value * found->factor;
  std::string known;
  for (const auto& one : units)
    if (!one.name.empty()) known += fmt::format("{}{}", known.empty() ? "" : ", ", one.name);
  fail(ErrorKind::usage, "has '{}', which is not a number{}", text,
       known.empty() ? "" : " with one of the units " + known);
}

void each_part(std::string_view text, std::string_view example,
               const std::function<bool(std::string_view key, std::string_view value)>& take) {
  for (std::string_view rest = text; !rest.empty();) {
    const auto comma = std::min(rest.find(','), rest.size());
    const auto part = rest.substr(0, comma);
    rest.remove_prefix(std::min(comma + 1, rest.size()));
    const auto equals = part.find('=');
    if (equals == std::string_view::npos || !take(part.substr(0, equals), part.substr(equals + 1)))
      fail(ErrorKind::usage, "must be written as {}, got '{}'", example, text);
  }
}

}  // namespace paceline::base
