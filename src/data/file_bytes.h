#pragma once

/// The contents of a data file, plain (mapped, so that all workers and processes share its pages) or gzip
/// (unpacked into memory).

#include <cstdint>
#include <filesystem>
#include <functional>
#include <span>

#include "base/buffer.h"
#include "data/mapped_file.h"

namespace paceline::data {

/// Move-only.
class FileBytes {
 public:
  [[nodiscard]] std::span<const std::uint8_t> bytes() const { return bytes_; }

  /// To be called after bytes have been read: that they were the file's. See MappedFile.
  ///
  /// Errors   Error(data): file, offset, reason
  void require_read() const { mapped_.require_read(); }

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
  std::span<const std::uint8_t> bytes_;  ///< of one of the two
  MappedFile mapped_;
  base::Buffer unpacked_;
};

}  // namespace paceline::data
