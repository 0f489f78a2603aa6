#pragma once

/// A memory-mapped file that survives read errors.
///
/// Normally a process dies with SIGBUS when it touches a mapped page that the file no longer has (it was
/// truncated) or whose disk fails. Here such a page becomes zeros, and the mapping remembers it. After
/// reading, callers call require_read() and discard what they have read if it throws. (Between the end of a
/// truncated file and the end of that page the system itself gives zeros, without a signal.)

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace paceline::data {

/// Move-only.
class MappedFile {
 public:
  MappedFile() = default;
  /// Maps a regular file; all workers and processes share its pages. The first mapping installs a handler for
  /// SIGBUS; at addresses outside our mappings the signal keeps its former action.
  ///
  /// Errors   Error(data): path and the system's reason, or what the path is if it is no regular file
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept { swap(other); }
  MappedFile& operator=(MappedFile&& other) noexcept {
    swap(other);
    return *this;
  }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  [[nodiscard]] std::span<const std::uint8_t> bytes() const { return bytes_; }

  /// Cost     one load
  /// Errors   Error(data): file, offset, the file's length now and when it was mapped
  void require_read() const {
    if (slot_ >= 0) look();
  }

 private:
  void swap(MappedFile& other) noexcept;
  void look() const;

  std::filesystem::path path_;
  std::span<const std::uint8_t> bytes_;
  int slot_ = -1;  ///< among the mappings that the signal handler knows; -1: none
};

}  // namespace paceline::data
