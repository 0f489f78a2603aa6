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
/// file beside it is written, synced and renamed over it. Missing parent directories are made. Links are
/// followed, and what is no file (a device, a FIFO) is written in place (replacement.h).
///
/// Errors   Error(data) naming the path and the system's reason; the temporary file is removed, here or, if
///          the process is killed, by the next write of the same path (replacement.h)
void write_file(const std::filesystem::path& path, std::string_view bytes);

/// The same in pieces: `writer` calls its argument with each piece, in order.
using Sink = std::function<void(std::span<const std::byte>)>;
void write_file(const std::filesystem::path& path, const std::function<void(const Sink&)>& writer);

/// Refuses a file that the user named, with the option that names it ("--html"), where its directory is not
/// there: a typing error is not to become a directory. Options that name directories make them.
///
/// Errors   Error(data)
void require_directory_of(const std::filesystem::path& file, std::string_view option);

/// The whole file as bytes. A FIFO is given 10 s to say something.
///
/// Errors   Error(data) naming the path and the system's reason
[[nodiscard]] std::string read_file(const std::filesystem::path& path);

}  // namespace paceline::base
