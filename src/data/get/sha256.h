#pragma once

/// SHA-256 of files.

#include <filesystem>
#include <string>

namespace paceline::data {

/// 64 hexadecimal digits, lower case.
///
/// Cost     reads the file once, in pieces: about 1 GB in 2 s
/// Errors   Error(data): path and the system's reason
[[nodiscard]] std::string sha256_of(const std::filesystem::path& path);

}  // namespace paceline::data
