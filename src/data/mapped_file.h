#pragma once

/// A file's bytes as memory, which stays memory when they cannot be read any more.
///
/// A page of a mapping that has no file behind it (the file was shortened) or whose disk fails ends a process
/// with SIGBUS, from whatever instruction touches it. Here such a page becomes zeros, and the mapping knows:
/// whoever has read asks require_read(), and throws away what he has read. (Between a shortened file's new
/// end and the end of that page the system gives zeros by itself, without a signal.)

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>

namespace paceline::data {

/// Move-only.
class MappedFile {
 public:
  MappedFile() = default;
  /// Maps a regular file, so that all workers and processes share its pages. The first one handles SIGBUS
  /// from then on; addresses of nobody's mapping keep the signal's former action.
  ///
  /// Errors   Error(data): path and the system's reason, or what it is if it is no regular file
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
  int slot_ = -1;  ///< among the mappings that the signal handler knows; -1: it does not
};

}  // namespace paceline::data
