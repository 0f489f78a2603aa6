#include "base/values.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>

#include "base/error.h"
#include "base/nearest.h"

namespace paceline::base {
namespace {

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::optional<std::int64_t> whole_number_between(std::string_view text, std::int64_t least,
                                                 std::int64_t most) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool read = error == std::errc{} && end == text.data() + text.size();
  return read && value >= least && value <= most ? std::optional(value) : std::nullopt;
}

/// The rule that `text` breaks. It names the largest number only if `text` is larger.
std::string rule_of(std::string_view text, std::int64_t least, std::int64_t most) {
  std::int64_t value = 0;
  const auto error = std::from_chars(text.data(), text.data() + text.size(), value).ec;
  const bool too_large = error == std::errc::result_out_of_range && !text.starts_with('-');
  if (most == std::numeric_limits<std::int64_t>::max() && !too_large)
    return fmt::format("a whole number of at least {}", least);
  return fmt::format("a whole number from {} to {}", least, most);
}

}  // namespace

std::int64_t whole_number(std::string_view text, std::int64_t least, std::int64_t most) {
  if (const auto value = whole_number_between(text, least, most)) return *value;
  fail(ErrorKind::usage, "must be {}, got '{}'", rule_of(text, least, most), text);
}

std::int64_t whole_number_in(std::string_view whole, std::string_view what, std::string_view text,
                             std::int64_t least, std::int64_t most) {
  if (const auto value = whole_number_between(text, least, most)) return *value;
  fail(ErrorKind::usage, "must have {} as its {}, got '{}'", rule_of(text, least, most), what, whole);
}

double decimal(std::string_view text, Bounds bounds) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  const bool read = error == std::errc{} && end == text.data() + text.size() && std::isfinite(value);
  const bool above = bounds.open_below ? value > bounds.least : value >= bounds.least;
  if (read && above && value <= bounds.most) return value;
  std::string rule = bounds.open_below ? fmt::format("above {}", as_text(bounds.least))
                                       : fmt::format("of at least {}", as_text(bounds.least));
  if (std::isfinite(bounds.most)) rule += fmt::format(" and at most {}", as_text(bounds.most));
  fail(ErrorKind::usage, "must be a number {}, got '{}'", rule, text);
}

bool truth(std::string_view text) {
  if (text == "true" || text == "yes" || text == "1") return true;
  if (text == "false" || text == "no" || text == "0") return false;
  fail(ErrorKind::usage, "must be true or false, got '{}'", text);
}

std::size_t one_of(std::string_view text, std::span<const std::string> names) {
  const auto found = std::find(names.begin(), names.end(), text);
  if (found != names.end()) return static_cast<std::size_t>(found - names.begin());
  std::string known = fmt::format("{}", fmt::join(names, ", "));
  if (const auto near = nearest_name(text, names))
    fail(ErrorKind::usage, "must be one of {}, got '{}'; did you mean '{}'?", known, text, *near);
  fail(ErrorKind::usage, "must be one of {}, got '{}'", known, text);
}

std::vector<std::string> parts(std::string_view text) {
  std::vector<std::string> result;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find(',', begin), text.size());
    const auto part = trimmed(text.substr(begin, end - begin));
    if (part.empty())
      fail(ErrorKind::usage, "must be a list such as 1,2,4 with something between the commas, got '{}'",
           text);
    result.emplace_back(part);
    begin = end + 1;
  }
  return result;
}

std::vector<std::int64_t> whole_numbers(std::string_view text, std::int64_t least, std::int64_t most) {
  std::vector<std::int64_t> result;
  for (const auto& part : parts(text)) {
    const auto value = whole_number(part, least, most);
    if (std::find(result.begin(), result.end(), value) != result.end())
      fail(ErrorKind::usage, "must not name {} twice, got '{}'", value, text);
    result.push_back(value);
  }
  return result;
}

std::string as_text(double value) { return fmt::format("{}", value); }

}  // namespace paceline::base
