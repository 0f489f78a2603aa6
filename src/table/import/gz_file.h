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

/// The contents of a file, unpacked if it begins like a gzip file.
///
/// Memory   two buffers of 64 KiB, however large the file is
/// Errors   Error(data) with the file: it cannot be opened. A damaged or truncated gzip file ends early, with
///          is_damaged()
class GzFile : public std::streambuf {
 public:
  explicit GzFile(const std::filesystem::path& path);

  /// Bytes of the contents that were read so far.
  [[nodiscard]] std::size_t taken() const { return taken_; }
  /// Whether the packed data is truncated or its checksum is wrong.
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
