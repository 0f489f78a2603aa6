#pragma once

/// Reading and writing safetensors files: named arrays and text metadata, as PyTorch users exchange them.
///
/// The format is 8 bytes of header length, a JSON header, then the arrays without gaps (docs/formats.md;
/// https://github.com/huggingface/safetensors). Little-endian throughout, as the machines we run on are.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "data/file_bytes.h"

namespace paceline::train {

/// One array: what it is, and its elements, which belong to somebody else.
struct Tensor {
  std::string name;
  base::DType dtype = base::DType::f32;
  std::vector<std::int64_t> shape;   ///< empty: a scalar
  std::span<const std::byte> bytes;  ///< elements in C order; not aligned in files of other writers
};

using Metadata = std::map<std::string, std::string>;

/// Writes `tensors` in the given order; the old file stays whole unless the new one is (base::write_file).
/// Metadata that have the key of safetensors_checksum.h, with whatever text, get the file's sum there.
///
/// Errors   Error(data) when the file cannot be written. Names must be distinct, none of them "__metadata__",
///          and bytes as long as dtype and shape say
void write_safetensors(const std::filesystem::path& path, std::span<const Tensor> tensors,
                       const Metadata& metadata = {});

/// An opened file. Tensors point into its mapping and live as long as it does.
///
/// Threads  any number of readers
class SafetensorsFile {
 public:
  /// Maps the file and checks all of its header: lengths, JSON, types, shapes, and that the arrays fill the
  /// rest of the file in order, without a hole or an overlap. Allocates no more than a small multiple of the
  /// header.
  ///
  /// Errors   Error(data): file, rule, actual value, next step
  explicit SafetensorsFile(const std::filesystem::path& path);

  [[nodiscard]] const std::filesystem::path& path() const { return path_; }
  [[nodiscard]] const Metadata& metadata() const { return metadata_; }
  [[nodiscard]] const std::vector<Tensor>& tensors() const { return tensors_; }  ///< in the order of the data

  /// The tensor `name`, or nullptr.
  [[nodiscard]] const Tensor* find(std::string_view name) const;

  /// Copies the tensor `name` to `dst`, after checking that it is there with this shape and as f32.
  ///
  /// Errors   Error(data) naming file, tensor, what was expected and what is there
  void copy_f32(std::string_view name, std::span<const std::int64_t> shape, std::span<float> dst) const;

 private:
  std::filesystem::path path_;
  data::FileBytes file_;
  Metadata metadata_;
  std::vector<Tensor> tensors_;
  std::map<std::string, std::size_t, std::less<>> by_name_;
};

}  // namespace paceline::train
