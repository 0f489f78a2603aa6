#pragma once

/// The contents of a data file: mapped if it is plain (all workers and processes share its pages), unpacked
/// into memory if it is gzip.

#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>
#include <string_view>

#include "base/buffer.h"

namespace paceline::data {

/// The same bytes as characters.
[[nodiscard]] inline std::string_view as_chars(std::span<const std::uint8_t> bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

/// The number of `size` bytes, 8 at most, that begins at `at`.
[[nodiscard]] constexpr std::uint64_t number_at(std::span<const std::uint8_t> bytes, std::size_t at,
                                                std::size_t size, bool is_big_endian = false) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < size; ++i)
    value |= std::uint64_t{bytes[at + i]} << (8 * (is_big_endian ? size - 1 - i : i));
  return value;
}

/// When the file last changed, on its file system's clock.
[[nodiscard]] inline std::int64_t modified_ns(const struct stat& status) {
  return std::int64_t{status.st_mtim.tv_sec} * 1'000'000'000 + status.st_mtim.tv_nsec;
}

/// Reads from `offset` on until `dst` is full or the file ends; returns the number of bytes, or -1 with
/// errno.
[[nodiscard]] std::int64_t read_at(int descriptor, std::uint64_t offset, std::span<std::uint8_t> dst);

/// Writes `bytes`; false, with errno, if not all of them could be written.
[[nodiscard]] bool write_all(int descriptor, std::span<const std::byte> bytes);

// A memory-mapped file that survives read errors.
//
// Normally a process dies with SIGBUS when it touches a mapped page that the file no longer has (it was
// truncated) or whose disk fails. Here such a page becomes zeros, and the mapping remembers it. After
// reading, callers call require_read() and discard what they have read if it throws. (Between the end of a
// truncated file and the end of that page the system itself gives zeros, without a signal.)

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

/// Move-only.
class FileBytes {
 public:
  [[nodiscard]] std::span<const std::uint8_t> bytes() const { return bytes_; }

  /// Call after reading bytes, to check that they came from the file; see MappedFile.
  ///
  /// Errors   Error(data): file, offset, reason
  void require_read() const { mapped_.require_read(); }

  /// Errors   Error(data): path and the system's reason
  [[nodiscard]] static FileBytes map(const std::filesystem::path& path);

  /// Unpacks a gzip file (all its members, as gzip does).
  ///
  /// `needed_bytes` gets the first `header_bytes` unpacked bytes and returns the total length that they
  /// announce. Another length is an error. Never allocates more than the packed file can unpack to (deflate
  /// packs at most 1032 to 1).
  ///
  /// Errors   Error(data) when the file ends early, is damaged, or holds more or less than its header says
  [[nodiscard]] static FileBytes unpack_gzip(
      const std::filesystem::path& path, std::size_t header_bytes,
      const std::function<std::size_t(std::span<const std::uint8_t> header)>& needed_bytes);

 private:
  std::span<const std::uint8_t> bytes_;  ///< of mapped_ or unpacked_
  MappedFile mapped_;
  base::Buffer unpacked_;
};

}  // namespace paceline::data
