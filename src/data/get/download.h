#pragma once

/// Downloads one file completely and checks its content.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

#include "base/shared_library.h"

namespace paceline::data {

// Finds the system's list of certificate authorities. Distributions keep it in different files, and a
// libcurl built on one distribution knows only that one's.

/// The file in SSL_CERT_FILE or CURL_CA_BUNDLE, else the first existing one of Debian's, Red Hat's, SUSE's
/// and Alpine's (below `root`); empty if there is none, then libcurl uses its own.
[[nodiscard]] std::filesystem::path certificate_file(const base::EnvironmentLookup& environment,
                                                     const std::filesystem::path& root = "/");

/// A published file.
struct RemoteFile {
  std::string name;               ///< "train-images-idx3-ubyte.gz"
  std::vector<std::string> urls;  ///< the publisher's first; if one fails, the next is tried
  std::int64_t bytes = 0;
  std::string sha256;  ///< 64 hexadecimal digits
};

struct DownloadOptions {
  int tries = 5;  ///< per address; pauses between them are 1, 2, 4, ... times `pause_s`
  double pause_s = 1;
  int connect_s = 20;         ///< a connection without an answer ends after this time
  int stall_s = 30;           ///< a transfer without a byte ends after this time
  std::stop_token stop = {};  ///< ends the transfer; received bytes are kept for the next time
  /// Called a few times a second with the bytes that are there.
  std::function<void(const RemoteFile& file, std::int64_t have)> progress = {};
  /// Called with the reason of a failed try and the time of the next, since several tries take minutes.
  std::function<void(const std::string& sentence)> say = {};
};

/// Downloads `file` to `path`. Bytes from earlier tries, in `path` + ".part", are not requested again (HTTP
/// Range); a broken transfer continues where it stopped. The content is compared with file.sha256 before the
/// file gets its name; a different content is deleted.
///
/// Errors   Error(data): the last failure and the file's addresses; a content with another hash (both are
///          given); a file that cannot be written; another process that downloads the same file;
///          libcurl or its module is missing
/// Threads  one at a time for a path; processes exclude each other
void download(const RemoteFile& file, const std::filesystem::path& path, const DownloadOptions& options);

}  // namespace paceline::data
