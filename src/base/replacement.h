#pragma once

/// A file on its way to take the place of another: written beside it, then synced and renamed over it.
///
/// A process that is killed leaves what it had written, `<path>.partial-XXXXXX`. The next replacement of the
/// same path removes it. Who still writes holds a lock on his (flock), which ends with his process however
/// that ends: what can be locked has been abandoned. Where the file system has no locks nothing is removed.
///
/// Threads  several replacements of one path may be under way at once; the last to commit stays

#include <cstddef>
#include <filesystem>
#include <span>
#include <string>

namespace paceline::base {

class Replacement {
 public:
  /// Errors   Error(data) naming the path and the system's reason, here and below; `path` is untouched then
  explicit Replacement(std::filesystem::path path);
  /// Unless it was committed, nothing has happened.
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

  std::filesystem::path path_;
  std::string temporary_;  ///< "": committed, or never made
  int descriptor_ = -1;
};

}  // namespace paceline::base
