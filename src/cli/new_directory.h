#pragma once

/// Names the output directory of a command without --out.

#include <filesystem>
#include <string_view>

namespace paceline::cli {

/// paceline-out/COMMAND-20250301-120000, by local time: a new directory for each call, so that no record is
/// overwritten. It does not exist yet.
[[nodiscard]] std::filesystem::path new_directory(std::string_view command);

}  // namespace paceline::cli
