#pragma once

#include <cstddef>
#include <string>

namespace paceline::base {

/// The machine's own name, as records and messages give it; "unknown" where the system has none to give.
[[nodiscard]] std::string host_name();
/// The longest that Linux lets it be (HOST_NAME_MAX), and its end: for messages of a fixed size.
inline constexpr std::size_t kHostNameBytes = 65;

}  // namespace paceline::base
