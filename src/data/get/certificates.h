#pragma once

/// Finds the system's list of certificate authorities. Distributions keep it in different files, and a
/// libcurl built on one distribution knows only that one's.

#include <filesystem>
#include <functional>

namespace paceline::data {

/// Returns the value of an environment variable; nullptr if it is not set.
using Environment = std::function<const char*(const char*)>;

/// The file in SSL_CERT_FILE or CURL_CA_BUNDLE, else the first existing one of Debian's, Red Hat's, SUSE's
/// and Alpine's (below `root`); empty if there is none, then libcurl uses its own.
[[nodiscard]] std::filesystem::path certificate_file(const Environment& environment,
                                                     const std::filesystem::path& root = "/");

}  // namespace paceline::data
