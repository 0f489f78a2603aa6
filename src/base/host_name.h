#pragma once

#include <cstddef>
#include <string>

namespace paceline::base {

/// The machine's own name, for records and messages; "unknown" where the system has none.
[[nodiscard]] std::string host_name();
/// The longest name that Linux allows (HOST_NAME_MAX) with its terminating zero, for messages of a fixed
/// size.
inline constexpr std::size_t kHostNameBytes = 65;

}  // namespace paceline::base
