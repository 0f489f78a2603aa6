#include "cli/options/toml_file.h"

#include <fmt/format.h>

#include "base/error.h"
#include "base/file.h"

namespace paceline::cli {

std::optional<std::string> typed_text(const toml::node& node, char between) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return std::to_string(number->get());
  if (const auto* number = node.as_floating_point()) return fmt::format("{:#}", number->get());
  if (const auto* truth = node.as_boolean()) return truth->get() ? "true" : "false";
  if (const auto* list = node.as_array()) {
    std::string joined;
    for (const auto& element : *list) {
      const auto part = element.is_array() ? std::nullopt : typed_text(element);
      if (!part) return std::nullopt;
      if (!joined.empty()) joined += between;
      joined += *part;
    }
    return joined;
  }
  return std::nullopt;
}

toml::table parse_toml(const std::filesystem::path& path) {
  const std::string text = base::read_file(path);
  try {
    return toml::parse(text, path.string());
  } catch (const toml::parse_error& error) {
    const std::string_view what = error.description();
    const bool ran_on = what.find("control character") != what.npos || what.find("end-of-file") != what.npos;
    base::fail(
        base::ErrorKind::usage, "{}:{}: not TOML: {}{}", path.string(), error.source().begin.line, what,
        ran_on ? "; most likely a quote is missing at the end of this line's text, or of one above" : "");
  }
}

}  // namespace paceline::cli
