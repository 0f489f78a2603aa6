#pragma once

/// Where a command without --out writes to.

#include <filesystem>
#include <string_view>

namespace paceline::cli {

/// paceline-out/COMMAND-20250301-120000, of the local time: a directory of its own for each call, so that
/// none overwrites another's record. It is not there yet.
[[nodiscard]] std::filesystem::path new_directory(std::string_view command);

}  // namespace paceline::cli
