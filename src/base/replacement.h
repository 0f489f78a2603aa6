#pragma once

/// Replaces a file atomically: writes a temporary file beside it, syncs it, renames it over the old one, and
/// syncs the directory. After that a crash cannot bring the old file back.
///
/// A killed process leaves its temporary file, `<path>.paceline-partial-XXXXXX`; the next replacement of the
/// same path removes it. A writer holds a lock (flock) on its temporary file, which ends with the process, so
/// a temporary file that can be locked was abandoned. On a file system without locks nothing is removed.
///
/// Symbolic links are followed: their target is replaced, and need not exist yet. A device, a FIFO or a
/// socket is not replaced but opened and written in place, and what was written cannot be undone.
///
/// Threads  several replacements of one path may run at once; the last one to commit wins

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace paceline::base {

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
  [[nodiscard]] int descriptor() const { return descriptor_; }
  void write(std::span<const std::byte> bytes);
  /// Call once; no write() may follow.
  void commit();

 private:
  void close();
  /// Valid until commit().
  [[nodiscard]] bool is_in_place() const { return temporary_.empty(); }

  std::filesystem::path path_;  ///< the end of all links
  std::string temporary_;       ///< "": committed, never made, or written in place
  int descriptor_ = -1;
};

}  // namespace paceline::base
