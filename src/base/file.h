#pragma once

/// Reads and writes whole files; a failed write leaves the old file intact.

#include <cstddef>
#include <filesystem>
#include <functional>
#include <span>
#include <string>
#include <string_view>

namespace paceline::base {

/// Writes `bytes` to `path` so that a full disk, a crash or Ctrl-C leaves the old file intact: writes and
/// syncs a temporary file beside it, then renames it. Makes missing parent directories. Follows links. A
/// device or FIFO is written in place (replacement.h).
///
/// Errors   Error(data) naming the path and the system's reason; the temporary file is removed, here or, if
///          the process is killed, by the next write of the same path (replacement.h)
void write_file(const std::filesystem::path& path, std::string_view bytes);

/// The same, in pieces: `writer` calls its argument with each piece, in order.
using Sink = std::function<void(std::span<const std::byte>)>;
void write_file(const std::filesystem::path& path, const std::function<void(const Sink&)>& writer);

/// Refuses a file that the user named with `option` ("--html") if its directory does not exist, since a
/// typing error should not make a directory. Options that name directories do make them.
///
/// Errors   Error(data)
void require_directory_of(const std::filesystem::path& file, std::string_view option);

/// The whole file as bytes. Waits up to 10 s for the first data of a FIFO.
///
/// Errors   Error(data) naming the path and the system's reason
[[nodiscard]] std::string read_file(const std::filesystem::path& path);

}  // namespace paceline::base
