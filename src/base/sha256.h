#pragma once

/// SHA-256 of files and of bytes in memory.

#include <cstddef>
#include <filesystem>
#include <memory>
#include <span>
#include <string>

namespace paceline::base {

/// Hexadecimal digits of a SHA-256.
inline constexpr std::size_t kSha256Digits = 64;

/// A sum over pieces of bytes.
///
/// Cost     about 0.5 to 2 GB/s, by the processor's instructions for it
/// Threads  one
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void update(std::span<const std::byte> bytes);
  /// 64 hexadecimal digits, lower case. Once, and no update() follows.
  [[nodiscard]] std::string digits();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

/// The sum of a whole file, as 64 hexadecimal digits in lower case.
///
/// Cost     reads the file once, in pieces
/// Errors   Error(data): path and the system's reason
[[nodiscard]] std::string sha256_of(const std::filesystem::path& path);

}  // namespace paceline::base
