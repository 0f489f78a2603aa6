#pragma once

/// The SHA-256 that a safetensors file of this program carries: in its `__metadata__`, under kChecksumKey,
/// over the whole file (length, header and data) with the 64 digits themselves taken as zeros
/// (docs/formats.md).
///
/// Readers that know nothing of it see one more text of the metadata.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace paceline::train {

/// The format's own: bytes of the header's length, and its longest header.
inline constexpr std::size_t kSafetensorsLengthBytes = 8;
inline constexpr std::uint64_t kSafetensorsMostHeaderBytes = 100'000'000;

inline constexpr std::string_view kChecksumKey = "sha256";

/// What stands under kChecksumKey until the sum is known.
[[nodiscard]] std::string checksum_placeholder();

/// The header of a file with `placeholder`s replaced by the sum: `header` as it will be written, padding
/// included, `data` in pieces, in order.
[[nodiscard]] std::string with_checksum(std::string header, std::span<const std::span<const std::byte>> data);

enum class Checksum {
  absent,  ///< of another writer, or of a version before it
  right,
  wrong,  ///< the bytes are not those that were summed
};

/// Compares the bytes of a file with the sum in its header.
///
/// Reads with read(), not through a mapping: a disk that fails is an error here, not a signal.
///
/// Cost     reads the file once; see base::Sha256
/// Errors   Error(data): it cannot be read, or is no regular file: path and reason
[[nodiscard]] Checksum check_checksum(const std::filesystem::path& path);

}  // namespace paceline::train
