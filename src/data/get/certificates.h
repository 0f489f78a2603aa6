#pragma once

/// Which authorities an https server may be vouched for by: distributions keep their lists in different
/// files, and a libcurl that was built on one of them knows that one's alone.

#include <filesystem>
#include <functional>

namespace paceline::data {

/// What a name in the environment says; nullptr where it is not set.
using Environment = std::function<const char*(const char*)>;

/// The list that SSL_CERT_FILE or CURL_CA_BUNDLE names, else the first that is there of those of Debian, Red
/// Hat, SUSE and Alpine (below `root`); empty where there is none: libcurl's own then.
[[nodiscard]] std::filesystem::path certificate_file(const Environment& environment,
                                                     const std::filesystem::path& root = "/");

}  // namespace paceline::data
