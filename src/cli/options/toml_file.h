#pragma once

/// Parses TOML for recipes and site files. Only their readers include this header, since toml++ is large.

#include <toml++/toml.h>

#include <filesystem>
#include <optional>
#include <string>

namespace paceline::cli {

/// Errors   Error(data) when it cannot be read; Error(usage) with file and line when it is not TOML
[[nodiscard]] toml::table parse_toml(const std::filesystem::path& path);

/// A value as it would be typed on the command line. A number with a point keeps it, since 1.0 is no integer
/// there either. Lists are joined with `between`. Nothing if the value has no such form.
[[nodiscard]] std::optional<std::string> typed_text(const toml::node& node, char between = ',');

}  // namespace paceline::cli
