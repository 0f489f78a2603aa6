/// Sums the bytes of a safetensors file, and compares the sum with the one that its header holds.

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>
#include <vector>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/sha256.h"
#include "train/checkpoint/safetensors.h"

namespace paceline::train {
namespace {

using base::kSha256Digits;

/// Position of the digits in a header; nullopt if the key is missing or occurs twice. JSON escapes quotes
/// inside a text, so only a real metadata key is found.
std::optional<std::size_t> digits_in(std::string_view header) {
  const std::string key = fmt::format("\"{}\":\"", kChecksumKey);
  const auto found = header.find(key);
  if (found == std::string_view::npos || header.find(key, found + 1) != std::string_view::npos)
    return std::nullopt;
  const auto begin = found + key.size();
  const auto end = begin + kSha256Digits;
  if (end >= header.size() || header[end] != '"') return std::nullopt;
  return begin;
}

/// Begins the sum of a file, whose header has zeros in place of the digits.
void add_header(std::string_view header, base::Sha256& sum) {
  const std::uint64_t length = header.size();
  sum.update(std::as_bytes(std::span(&length, 1)));
  sum.update(std::as_bytes(std::span(header)));
}

/// A file that is read from begin to end.
class Input {
 public:
  /// O_NONBLOCK: opening a FIFO must not block, so that it can be refused.
  explicit Input(const std::filesystem::path& path)
      : path_(path), descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
    if (!descriptor_.is_open()) fail(errno);
    struct stat found {};
    if (::fstat(descriptor_.get(), &found) != 0 || !S_ISREG(found.st_mode))
      base::fail(base::ErrorKind::data, "{}: is not a regular file; give a checkpoint", path.string());
    size_ = static_cast<std::uint64_t>(found.st_size);
  }

  [[nodiscard]] std::uint64_t size() const { return size_; }

  /// Fills `dst` as far as the file reaches.
  std::size_t read(std::span<std::byte> dst) {
    std::size_t filled = 0;
    while (filled < dst.size()) {
      const ssize_t count = ::read(descriptor_.get(), dst.data() + filled, dst.size() - filled);
      if (count < 0 && errno == EINTR) continue;
      if (count < 0) fail(errno);
      if (count == 0) break;
      filled += static_cast<std::size_t>(count);
    }
    return filled;
  }

 private:
  [[noreturn]] void fail(int error) const {
    base::fail(base::ErrorKind::data, "{}: cannot be read: {}", path_.string(), std::strerror(error));
  }

  const std::filesystem::path& path_;
  const base::Descriptor descriptor_;
  std::uint64_t size_ = 0;
};

}  // namespace

std::string checksum_placeholder() { return std::string(kSha256Digits, '0'); }

std::string with_checksum(std::string header, std::span<const std::span<const std::byte>> data) {
  const auto at = digits_in(header);
  base::expects(at && header.compare(*at, kSha256Digits, checksum_placeholder()) == 0,
                "the header has the placeholder of its checksum once");
  base::Sha256 sum;
  add_header(header, sum);
  for (const auto& piece : data) sum.update(piece);
  return header.replace(*at, kSha256Digits, sum.digits());
}

Checksum check_checksum(const std::filesystem::path& path) {
  Input file(path);
  std::uint64_t length = 0;
  if (file.read(std::as_writable_bytes(std::span(&length, 1))) < kSafetensorsLengthBytes)
    return Checksum::absent;
  if (length > kSafetensorsMostHeaderBytes || length > file.size() - kSafetensorsLengthBytes)
    return Checksum::absent;
  std::string header(length, '\0');
  if (file.read(std::as_writable_bytes(std::span(header))) < length) return Checksum::absent;
  const auto at = digits_in(header);
  if (!at) return Checksum::absent;
  const std::string written = header.substr(*at, kSha256Digits);
  base::Sha256 sum;
  add_header(header.replace(*at, kSha256Digits, checksum_placeholder()), sum);
  std::vector<std::byte> piece(std::min<std::uint64_t>(file.size(), std::uint64_t{1} << 20));
  while (const auto count = file.read(piece)) sum.update(std::span(piece).first(count));
  return sum.digits() == written ? Checksum::right : Checksum::wrong;
}

}  // namespace paceline::train
