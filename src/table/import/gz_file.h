#pragma once

/// Files as they are, or packed by gzip, read as one stream of their content.

#include <array>
#include <cstddef>
#include <filesystem>
#include <istream>
#include <memory>
#include <streambuf>
#include <string>

namespace paceline::table {

/// The content of a file, unpacked where it begins as a gzip file does.
///
/// Memory   two buffers of 64 KiB, however large the file
/// Errors   Error(data) with the file: it cannot be opened. A damaged or cut gzip file ends early, with
///          is_damaged()
class GzFile : public std::streambuf {
 public:
  explicit GzFile(const std::filesystem::path& path);

  /// Bytes of the content that were read so far.
  [[nodiscard]] std::size_t taken() const { return taken_; }
  /// The packed data broke off or its checksum is wrong.
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

/// All of a file's content, unpacked.
///
/// Errors   Error(data) with the file: it cannot be opened, its gzip data is damaged or cut, or it has more
///          than `most_bytes` of content
[[nodiscard]] std::string content_of(const std::filesystem::path& path,
                                     std::size_t most_bytes = std::size_t{1} << 30);

}  // namespace paceline::table
