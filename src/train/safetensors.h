#pragma once

/// The safetensors format: named arrays in one file, readable by PyTorch, JAX, NumPy and others.
///
///   u64 little endian: length n of the header · n bytes of JSON, padded with spaces to a multiple of 8 ·
///   the tensors' bytes, one after the other, without holes
/// Header: {"__metadata__": {text: text}, "NAME": {"dtype": "F32", "shape": [..], "data_offsets": [begin,
/// end]}, ...} Source   https://github.com/huggingface/safetensors (format description)

#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"

namespace paceline::train {

/// A tensor to be written: a view of the caller's memory, row-major.
struct TensorView {
  std::string name;
  base::DType dtype = base::DType::f32;
  std::vector<std::int64_t> shape;  ///< empty: a scalar
  std::span<const std::byte> bytes;
};

using Metadata = std::map<std::string, std::string>;

/// Writes whole or not at all, tensors in the order given; the same input gives the same bytes.
/// Errors   Error(data) naming the file and the reason
void write_safetensors(const std::filesystem::path& path, std::span<const TensorView> tensors,
                       const Metadata& metadata);

/// A file read whole and checked.
class SafetensorsFile {
 public:
  /// Errors   Error(data): the file, the rule that does not hold, the actual value
  explicit SafetensorsFile(const std::filesystem::path& path);

  /// All tensors, in the order of their bytes; views into this object.
  [[nodiscard]] const std::vector<TensorView>& tensors() const { return tensors_; }
  /// The tensor of that name, or nullptr.
  [[nodiscard]] const TensorView* find(const std::string& name) const;
  [[nodiscard]] const Metadata& metadata() const { return metadata_; }

 private:
  std::string bytes_;
  std::vector<TensorView> tensors_;
  Metadata metadata_;
};

}  // namespace paceline::train
