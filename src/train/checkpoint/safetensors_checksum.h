#pragma once

/// Writes and checks the SHA-256 in the safetensors files of this program: in `__metadata__` under
/// kChecksumKey, over the whole file (length, header and data) with the 64 digits themselves replaced by
/// zeros (docs/formats.md).
///
/// Readers that do not know it see one more text in the metadata.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace paceline::train {

/// Constants of the format: bytes of the header's length, and the longest header.
inline constexpr std::size_t kSafetensorsLengthBytes = 8;
inline constexpr std::uint64_t kSafetensorsMostHeaderBytes = 100'000'000;

inline constexpr std::string_view kChecksumKey = "sha256";

/// The text under kChecksumKey while the checksum is not known.
[[nodiscard]] std::string checksum_placeholder();

/// Replaces the placeholder in `header` by the checksum. `header` is as it will be written, including
/// padding; `data` are the pieces that follow, in order.
[[nodiscard]] std::string with_checksum(std::string header, std::span<const std::span<const std::byte>> data);

enum class Checksum {
  absent,  ///< written by another program, or by an older version
  right,
  wrong,  ///< the bytes have changed
};

/// Compares the bytes of a file with the checksum in its header. Uses read(), not a mapping, so a failing
/// disk is an error and not a signal.
///
/// Cost     reads the file once; see base::Sha256
/// Errors   Error(data): it cannot be read, or is no regular file: path and reason
[[nodiscard]] Checksum check_checksum(const std::filesystem::path& path);

}  // namespace paceline::train
