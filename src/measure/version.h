#pragma once

/// The version of this program. It is compiled into version.cc only, so that a commit rebuilds one file.

#include <string>

namespace paceline::measure {

[[nodiscard]] std::string version();     ///< "0.1.0 (5893440)", "0.1.0 (5893440, modified)"
[[nodiscard]] std::string compiler();    ///< "GCC 12.2.0"
[[nodiscard]] std::string build_type();  ///< "Release"; with a sanitizer "Release, thread sanitizer"

}  // namespace paceline::measure
