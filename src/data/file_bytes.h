#pragma once

/// The contents of a data file, plain (mapped, so that all workers and processes share its pages) or gzip
/// (unpacked into memory).

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>

#include "base/buffer.h"

namespace paceline::data {

/// Move-only. The file must not be shortened while it is mapped.
class FileBytes {
 public:
  FileBytes() = default;
  ~FileBytes();
  FileBytes(FileBytes&& other) noexcept { swap(other); }
  FileBytes& operator=(FileBytes&& other) noexcept {
    swap(other);
    return *this;
  }
  FileBytes(const FileBytes&) = delete;
  FileBytes& operator=(const FileBytes&) = delete;

  [[nodiscard]] std::span<const std::uint8_t> bytes() const { return bytes_; }

  /// Errors   Error(data): path and the system's reason
  [[nodiscard]] static FileBytes map(const std::filesystem::path& path);

  /// Unpacks a gzip file (all its members, as gzip does).
  ///
  /// `needed_bytes` is told the first `header_bytes` unpacked bytes and says how long the whole must be; the
  /// text that does not come to that length is an error, and nothing larger than the packed file can explain
  /// (deflate packs at most 1032 to 1) is ever allocated.
  ///
  /// Errors   Error(data) when the file ends early, is damaged, or holds more or less than its header says
  [[nodiscard]] static FileBytes unpack_gzip(
      const std::filesystem::path& path, std::size_t header_bytes,
      const std::function<std::size_t(std::span<const std::uint8_t> header)>& needed_bytes);

 private:
  void swap(FileBytes& other) noexcept;

  std::span<const std::uint8_t> bytes_;
  void* mapping_ = nullptr;  ///< of bytes_, or null when they lie in unpacked_
  base::Buffer unpacked_;
};

}  // namespace paceline::data
