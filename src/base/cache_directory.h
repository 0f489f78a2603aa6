#pragma once

/// The directory of files that the program can make or download again.

#include <filesystem>

namespace paceline::base {

/// $PACELINE_CACHE, else $XDG_CACHE_HOME/paceline, else ~/.cache/paceline, else ./paceline-cache. It need not
/// exist.
[[nodiscard]] std::filesystem::path cache_directory();

}  // namespace paceline::base
