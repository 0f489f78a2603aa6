#include "data/spec.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <optional>

#include "base/error.h"
#include "base/nearest.h"

namespace paceline::data {

namespace {

/// Commands in reports are written with ~, which no shell expands after a colon.
std::string with_home(const std::string& directory) {
  const char* const home = std::getenv("HOME");
  const bool is_of_home = directory == "~" || directory.starts_with("~/");
  return is_of_home && home != nullptr ? home + directory.substr(1) : directory;
}

}  // namespace

Spec parse_spec(const std::string& text) {
  Spec spec{.text = text, .name = {}, .directory = {}, .options = {}};
  std::size_t begin = text.find(',');
  const std::string head = text.substr(0, begin);
  const std::size_t colon = head.find(':');
  spec.name = head.substr(0, colon);
  if (colon != std::string::npos) spec.directory = with_home(head.substr(colon + 1));
  while (begin != std::string::npos) {
    const std::size_t end = text.find(',', begin + 1);
    const std::string item = text.substr(begin + 1, end == std::string::npos ? end : end - begin - 1);
    const std::size_t equals = item.find('=');
    if (equals == std::string::npos || equals == 0)
      base::fail(
          base::ErrorKind::usage,
          "data '{}': an option is written key=value, but after the comma stands '{}'; a directory name "
          "may hold no comma, and several numbers of one option are joined by ':'",
          text, item);
    const std::string key = item.substr(0, equals);
    if (!spec.options.emplace(key, item.substr(equals + 1)).second)
      base::fail(base::ErrorKind::usage, "data '{}': the option '{}' is given twice; keep one of them", text,
                 key);
    begin = end;
  }
  return spec;
}

void expect_options(const Spec& spec, std::span<const std::string> known) {
  for (const auto& [key, value] : spec.options) {
    bool found = false;
    for (const auto& name : known) found = found || name == key;
    if (!found)
      base::fail(base::ErrorKind::usage, "data '{}': {} has no option '{}'{}", spec.text, spec.name, key,
                 base::suggestion(key, known));
  }
}

std::int64_t integer_option(const Spec& spec, const std::string& key, std::int64_t otherwise,
                            std::int64_t low, std::int64_t high) {
  const auto found = spec.options.find(key);
  if (found == spec.options.end()) return otherwise;
  const std::string& text = found->second;
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < low || value > high)
    base::fail(base::ErrorKind::usage, "data '{}': {} is a whole number from {} to {}, not '{}'; correct it",
               spec.text, key, low, high, text);
  return value;
}

namespace {

/// `text` as a number, if it is one in [low, high].
std::optional<double> decimal_in(std::string_view text, double low, double high) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= low && value <= high))
    return std::nullopt;
  return value;
}

}  // namespace

double decimal_option(const Spec& spec, const std::string& key, double otherwise, double low, double high) {
  const auto found = spec.options.find(key);
  if (found == spec.options.end()) return otherwise;
  const auto value = decimal_in(found->second, low, high);
  if (!value)
    base::fail(base::ErrorKind::usage, "data '{}': {} is a number from {:g} to {:g}, not '{}'; correct it",
               spec.text, key, low, high, found->second);
  return *value;
}

std::vector<double> decimals_option(const Spec& spec, const std::string& key, std::size_t count, double low,
                                    double high) {
  const auto found = spec.options.find(key);
  if (found == spec.options.end()) return {};
  std::vector<double> values;
  std::string_view rest = found->second;
  for (bool more = true; more;) {
    const std::size_t colon = std::min(rest.find(':'), rest.size());
    const auto value = decimal_in(rest.substr(0, colon), low, high);
    if (!value) break;
    values.push_back(*value);
    more = colon < rest.size();
    rest.remove_prefix(std::min(colon + 1, rest.size()));
    if (!more && values.size() == 1) values.resize(count, values.front());
    if (!more && values.size() == count) return values;
  }
  base::fail(
      base::ErrorKind::usage,
      "data '{}': {} is a number from {:g} to {:g} for each of {} channel{}, joined by ':', or one for "
      "all, not '{}'; correct it",
      spec.text, key, low, high, count, count == 1 ? "" : "s", found->second);
}

}  // namespace paceline::data
