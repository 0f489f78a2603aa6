#pragma once

/// The contents of a data file: mapped if it is plain (all workers and processes share its pages), unpacked
/// into memory if it is gzip.

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
