#pragma once

/// What recipes and site files have in common as TOML. Included by their readers only: toml++ is long.

#include <toml++/toml.h>

#include <filesystem>
#include <optional>
#include <string>

namespace paceline::cli {

/// Errors   Error(data) when it cannot be read; Error(usage) with file and line when it is no TOML
[[nodiscard]] toml::table parse_toml(const std::filesystem::path& path);

/// A value as it would be typed on the command line: a number with a point keeps it, since 1.0 is no whole
/// number there either. Lists are joined with `between`. Empty: no such form.
[[nodiscard]] std::optional<std::string> typed_text(const toml::node& node, char between = ',');

}  // namespace paceline::cli
