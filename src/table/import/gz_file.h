#pragma once

/// Reads files, plain or packed by gzip, as a stream of their contents.

#include <array>
#include <cstddef>
#include <filesystem>
#include <istream>
#include <memory>
#include <streambuf>
#include <string>

namespace paceline::table {

/// The contents of a file, unpacked if its first two bytes are those of gzip. If a gzip file is damaged or
/// truncated, the stream ends early and is_damaged() is true from then on.
///
/// Memory   two buffers of 64 KiB (zlib's and this one), however large the file is
/// Errors   Error(data): the file cannot be opened
class GzFile : public std::streambuf {
 public:
  explicit GzFile(const std::filesystem::path& path);

  /// Unpacked bytes read from the file so far.
  [[nodiscard]] std::size_t taken() const { return taken_; }
  /// Whether the gzip data read so far is truncated, invalid or has a wrong checksum.
  [[nodiscard]] bool is_damaged() const { return is_damaged_; }

 protected:
  int_type underflow() override;

 private:
  struct Close {
    void operator()(void* file) const;
  };
  std::unique_ptr<void, Close> file_;
  std::array<char, 64 << 10> buffer_;
  std::size_t taken_ = 0;
  bool is_damaged_ = false;
};

/// All contents of a file, unpacked.
///
/// Errors   Error(data) with the file: it cannot be opened, its gzip data is damaged or truncated, or its
///          contents exceed `most_bytes`
[[nodiscard]] std::string content_of(const std::filesystem::path& path,
                                     std::size_t most_bytes = std::size_t{1} << 30);

}  // namespace paceline::table
