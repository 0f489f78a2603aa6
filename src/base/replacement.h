#pragma once

/// A file on its way to take the place of another: written beside it, then synced and renamed over it, and
/// the directory synced: what is removed after that cannot outlive it.
///
/// A process that is killed leaves what it had written, `<path>.paceline-partial-XXXXXX`. The next
/// replacement of the same path removes it. Who still writes holds a lock on his (flock), which ends with his
/// process however that ends: what can be locked has been abandoned. Where the file system has no locks
/// nothing is removed.
///
/// A symbolic link is followed: what it leads to is replaced, beside itself, and need not be there yet. A
/// device, a FIFO or a socket is never replaced: it is opened and written in place, as it comes, and nothing
/// is undone.
///
/// Threads  several replacements of one path may be under way at once; the last to commit stays

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace paceline::base {

/// Whether `path` leads to a device, a FIFO or a socket, or is a name of an open descriptor (/dev/stdout):
/// what a file that took its place would break.
[[nodiscard]] bool is_written_in_place(const std::filesystem::path& path);

class Replacement {
 public:
  /// Errors   WriteError naming the path and the system's reason, here and below; a file is untouched then
  explicit Replacement(std::filesystem::path path);
  /// Unless it was committed, nothing has happened (but in place).
  ~Replacement();
  Replacement(const Replacement&) = delete;
  Replacement& operator=(const Replacement&) = delete;

  /// For a library that writes itself.
  [[nodiscard]] int descriptor() const { return descriptor_; }
  void write(std::span<const std::byte> bytes);
  /// Once, and nothing is written after it.
  void commit();

 private:
  void close();
  /// Until it is committed.
  [[nodiscard]] bool is_in_place() const { return temporary_.empty(); }

  std::filesystem::path path_;  ///< the end of all links
  std::string temporary_;       ///< "": committed, never made, or written in place
  int descriptor_ = -1;
};

}  // namespace paceline::base
