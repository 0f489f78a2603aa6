#pragma once

/// Files that are either whole or untouched.

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace paceline::base {

/// Writes `bytes` to `path` so that a full disk, a crash or Ctrl-C leaves the old file whole: a temporary
/// file beside it is written, synced and renamed over it. Missing parent directories are made.
///
/// Errors   Error(data) naming the path and the system's reason; the temporary file is removed, here or, if
/// the
///          process is killed, by the next write of the same path (replacement.h)
void write_file(const std::filesystem::path& path, std::string_view bytes);

/// The same in pieces: `writer` calls its argument with each piece, in order.
using Sink = std::function<void(std::span<const std::byte>)>;
void write_file(const std::filesystem::path& path, const std::function<void(const Sink&)>& writer);

/// Why the system refused a write, for a sentence: its reason for `error` (an errno), and where that is the
/// limit of a file's size (ulimit -f, which ends a process that does not ignore SIGXFSZ) the limit too.
[[nodiscard]] std::string reason_of_write(int error);

/// The whole file as bytes. Errors: Error(data) naming the path and the system's reason.
[[nodiscard]] std::string read_file(const std::filesystem::path& path);

}  // namespace paceline::base
