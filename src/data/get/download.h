#pragma once

/// One file from the network, whole and of the right content, or an error that says what to do.

#include <cstdint>
#include <filesystem>
#include <functional>
#include <stop_token>
#include <string>
#include <vector>

namespace paceline::data {

/// A file as its publisher has it.
struct RemoteFile {
  std::string name;               ///< "train-images-idx3-ubyte.gz"
  std::vector<std::string> urls;  ///< the publisher's first; the next is tried when one fails
  std::int64_t bytes = 0;
  std::string sha256;  ///< 64 hexadecimal digits
};

struct DownloadOptions {
  int tries = 5;  ///< of each address; between them 1, 2, 4, ... times `pause_s`
  double pause_s = 1;
  int connect_s = 20;         ///< without an answer for so long, a connection is given up
  int stall_s = 30;           ///< without a byte for so long, a transfer is
  std::stop_token stop = {};  ///< ends the transfer; what has come is kept for the next time
  /// Told a few times a second how much of the file is there.
  std::function<void(const RemoteFile& file, std::int64_t have)> progress = {};
  /// Told why a try failed and when the next one is, since several silent ones take minutes.
  std::function<void(const std::string& sentence)> say = {};
};

/// Brings `file` to `path`. What came of it before, in `path` + ".part", is not asked for again (HTTP Range),
/// and a transfer that breaks goes on where it broke. The content is compared with file.sha256 before it gets
/// its name; one that differs is thrown away.
///
/// Errors   Error(data): the sentence of the last failure and the file's addresses; a content that is not the
///          publisher's, with both sums; a file that cannot be written; another process at the same file
/// Threads  one at a time for a path; processes exclude each other
void download(const RemoteFile& file, const std::filesystem::path& path, const DownloadOptions& options);

}  // namespace paceline::data
