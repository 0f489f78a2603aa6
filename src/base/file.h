#pragma once

/// Reads and writes whole files; a failed write leaves the old file intact.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/descriptor.h"

namespace paceline::base {

// Replaces a file atomically: writes a temporary file beside it, syncs it, renames it over the old one, and
// syncs the directory. After that a crash cannot bring the old file back.
//
// A killed process leaves its temporary file, `<path>.paceline-partial-XXXXXX`; the next replacement of the
// same path removes it. A writer holds a lock (flock) on its temporary file, which ends with the process, so
// a temporary file that can be locked was abandoned. On a file system without locks nothing is removed.
//
// Symbolic links of this user and of root are followed: their target is replaced, and need not exist yet.
// Another user's link in a directory of everybody is refused, as the file itself and anywhere on the way to
// it, since it may lead to any file of this user. A device, a FIFO or a socket is
// not replaced but opened and written in place, and what was written cannot be undone.
//
// A new file gets the mode that the umask leaves of 0666; a replaced one keeps its mode.
//
// Threads  several replacements of one path may run at once; the last one to commit wins

/// Where `path`, of an output, leads through symbolic links; it need not exist. To be called before
/// directories on the way to an output are made.
///
/// Errors   Error(data): a link on the way is another user's, in a directory of everybody
std::filesystem::path end_of_links(const std::filesystem::path& path);

/// Whether `path` leads to a device, a FIFO or a socket, or names an open descriptor (/dev/stdout). Such a
/// path must not be replaced by a regular file.
[[nodiscard]] bool is_written_in_place(const std::filesystem::path& path);

class Replacement {
 public:
  /// Errors   this and all members: WriteError naming the path and the system's reason; the old file is
  ///          intact
  explicit Replacement(std::filesystem::path path);
  /// Without commit() the old file stays as it was (unless it was written in place).
  ~Replacement();
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;

  /// For libraries that write to a descriptor.
  [[nodiscard]] int descriptor() const { return file_.get(); }
  void write(std::span<const std::byte> bytes);
  /// Call once; no write() may follow.
  void commit();

 private:
  /// Valid until commit().
  [[nodiscard]] bool is_in_place() const { return temporary_.empty(); }

  std::filesystem::path path_;  ///< the end of all links
  std::string temporary_;       ///< "": committed, never made, or written in place
  Descriptor file_;
};

/// $PACELINE_CACHE, else $XDG_CACHE_HOME/paceline, else ~/.cache/paceline, else ./paceline-cache. It need not
/// exist.
[[nodiscard]] std::filesystem::path cache_directory();

/// Writes `bytes` to `path` so that a full disk, a crash or Ctrl-C leaves the old file intact: writes and
/// syncs a temporary file beside it, then renames it. Makes missing parent directories. Follows links. A
/// device or FIFO is written in place.
///
/// Errors   Error(data) naming the path and the system's reason; the temporary file is removed, here or, if
///          the process is killed, by the next write of the same path
void write_file(const std::filesystem::path& path, std::string_view bytes);

/// The same, in pieces: `writer` calls its argument with each piece, in order.
using Sink = std::function<void(std::span<const std::byte>)>;
void write_file(const std::filesystem::path& path, const std::function<void(const Sink&)>& writer);

/// Refuses a file that the user named with `option` ("--html") if its directory does not exist, since a
/// typing error should not make a directory. Options that name directories do make them.
///
/// Errors   Error(data)
void require_directory_of(const std::filesystem::path& file, std::string_view option);

// What cannot be looked at is not there; a link stands for its target.
[[nodiscard]] bool is_there(const std::filesystem::path& path);
[[nodiscard]] bool is_file(const std::filesystem::path& path);
[[nodiscard]] bool is_folder(const std::filesystem::path& path);
/// What lies in `folder`, in no order, as far as it can be read; nothing if it is no folder.
[[nodiscard]] std::vector<std::filesystem::directory_entry> entries_of(const std::filesystem::path& folder);

/// Free bytes on the disk of `path` or of its nearest existing parent; nothing if the system does not tell.
[[nodiscard]] std::optional<std::int64_t> free_bytes(const std::filesystem::path& path);

/// The first line of a file, such as one of /sys; nothing if it is empty or cannot be read.
[[nodiscard]] std::optional<std::string> first_line_of(const std::filesystem::path& path);

/// The whole file as bytes. Waits up to 10 s for the first data of a FIFO.
///
/// Errors   Error(data) naming the path and the system's reason
[[nodiscard]] std::string read_file(const std::filesystem::path& path);

/// The same, but anything else than a regular file is an error at once, and so is a file of more than
/// `longest` bytes: for files that other people may have made.
[[nodiscard]] std::string read_regular_file(const std::filesystem::path& path,
                                            std::int64_t longest = INT64_MAX);

/// The text of a file that `option` names and that nobody else can read: at least `fewest` characters,
/// without the end of the line.
///
/// Errors   Error(data): no such file, other users can read it, or it does not hold such a text
[[nodiscard]] std::string read_secret(const std::filesystem::path& path, std::string_view option,
                                      std::size_t fewest);

}  // namespace paceline::base
