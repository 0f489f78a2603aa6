#include "base/units.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string>

#include "base/error.h"

namespace paceline::base {

double number_in_units(std::string_view text, std::span<const Unit> units) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  const auto found =
      std::find_if(units.begin(), units.end(), [&](const Unit& one) { return one.name == unit; });
  if (error == std::errc() && value >= 0 && std::isfinite(value) && found != units.end())
    return value * found->factor;
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
