#pragma once

/// Reads and writes safetensors files, PyTorch's exchange format: named arrays and text metadata.
///
/// The format is 8 bytes of header length, a JSON header, then the arrays without gaps (docs/formats.md;
/// https://github.com/huggingface/safetensors). Little-endian, as the machines that we support.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/dtype.h"
#include "data/file_bytes.h"

namespace paceline::train {

// Writes and checks the SHA-256 in the safetensors files of this program: in `__metadata__` under
// kChecksumKey, over the whole file (length, header and data) with the 64 digits themselves replaced by
// zeros (docs/formats.md).
//
// Readers that do not know it see one more text in the metadata.

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

/// One array: its description, and a view of its elements.
struct Tensor {
  std::string name;
  base::DType dtype = base::DType::f32;
  std::vector<std::int64_t> shape;   ///< empty: a scalar
  std::span<const std::byte> bytes;  ///< elements in C order; may be unaligned in files of other writers
};

using Metadata = std::map<std::string, std::string>;

/// Writes `tensors` in the given order; an old file stays intact until the new one is complete
/// (base::write_file). If metadata have the key of the checksum, its text is replaced by the file's
/// checksum.
///
/// Requires  distinct names other than "__metadata__", and as many bytes as dtype and shape say
/// Errors    Error(data) when the file cannot be written
void write_safetensors(const std::filesystem::path& path, std::span<const Tensor> tensors,
                       const Metadata& metadata = {});

/// An open file. Tensors point into its mapping and are valid as long as this object.
///
/// Threads  any number of readers
class SafetensorsFile {
 public:
  /// Maps the file and checks its header: lengths, JSON, types, shapes, and that the arrays fill the rest of
  /// the file in order, without a gap or an overlap. Allocates at most a small multiple of the header's size.
  ///
  /// Errors   Error(data): file, rule, actual value, next step
  explicit SafetensorsFile(const std::filesystem::path& path);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] const Metadata& metadata() const { return metadata_; }
  [[nodiscard]] const std::vector<Tensor>& tensors() const { return tensors_; }  ///< in the order of the data

  /// The tensor `name`, or nullptr.
  [[nodiscard]] const Tensor* find(std::string_view name) const;

  /// Copies the tensor `name` to `dst`, after checking its shape and that it is f32.
  ///
  /// Errors   Error(data) naming file, tensor, what was expected and what is there
  void copy_f32(std::string_view name, std::span<const std::int64_t> shape, std::span<float> dst) const;

 private:
  std::filesystem::path path_;
  data::FileBytes file_;
  Metadata metadata_;
  std::vector<Tensor> tensors_;
  std::unordered_map<std::string_view, std::size_t> by_name_;  ///< the names are those in tensors_
};

}  // namespace paceline::train
