#pragma once

/// Computes SHA-256 of files and of bytes in memory.

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace paceline::base {

/// Hexadecimal digits of a SHA-256.
inline constexpr std::size_t kSha256Digits = 64;

/// SHA-256 of bytes that arrive in pieces.
///
/// Cost     about 0.5 to 2 GB/s, with the processor's SHA instructions
/// Threads  one
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void update(std::span<const std::byte> bytes);
  /// 64 hexadecimal digits, lower case. Call once; no update() may follow.
  [[nodiscard]] std::string digits();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

/// SHA-256 of a text, as 64 hexadecimal digits in lower case.
[[nodiscard]] std::string sha256_of_text(std::string_view text);

/// SHA-256 of a whole file, as 64 hexadecimal digits in lower case.
///
/// Cost     reads the file once, in pieces
/// Errors   Error(data): path and the system's reason
[[nodiscard]] std::string sha256_of(const std::filesystem::path& path);

}  // namespace paceline::base
