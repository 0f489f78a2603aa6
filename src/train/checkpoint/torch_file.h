#pragma once

/// Reads the weights in files of PyTorch's torch.save() (1.6 or later), without PyTorch.
///
/// Such a file is a zip archive: a Python pickle, `data.pkl`, says which arrays there are and how they lie in
/// the other parts (docs/formats.md). The pickle is parsed and never run: it may name the few classes and
/// functions that state dicts are made of, and some that hold plain values beside them; any other is refused.

#include <cstddef>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "data/file_bytes.h"
#include "train/checkpoint/safetensors.h"

namespace paceline::train {

/// Whether TorchFile reads a file, by how it begins. False for safetensors, and for what nothing tells apart.
///
/// Errors   Error(data): the file is of a known other kind, or cannot be read; says how to convert it
[[nodiscard]] bool is_torch_file(const std::filesystem::path& path);

/// An open file. Arrays that lie in dictionaries of a dictionary have the keys before their names,
/// "state_dict.fc.bias".
class TorchFile {
 public:
  /// Reads the pickle, and checks that each array lies within its part. Allocates a small multiple of the
  /// pickle's size.
  ///
  /// Errors   Error(data): the file is damaged, or is none of weights alone; what to do
  explicit TorchFile(const std::filesystem::path& path);

  /// In the order of the file. Numbers that are none of F64, F32, F16 or BF16 have a type of whole numbers.
  [[nodiscard]] const std::vector<Tensor>& tensors() const { return tensors_; }

  /// Gives these of tensors() their bytes, in C order.
  ///
  /// Requires there is memory for arrays of their shapes, which may be larger than the file (strides of 0)
  /// Cost     reads the parts in which they lie, one at a time
  /// Errors   Error(data): a part is damaged
  void load(std::span<const Tensor* const> wanted);

 private:
  /// Where a tensor lies. Counted in elements.
  struct Place {
    const std::string* part = nullptr;  ///< a name in parts_; null: the tensor has no elements
    std::uint64_t element_bytes = 0;
    std::int64_t offset = 0;
    std::vector<std::int64_t> strides;
  };
  class Collector;

  void read_parts();
  [[nodiscard]] std::vector<std::byte> gathered(const Tensor& tensor, const Place& place,
                                                std::span<const std::byte> part) const;

  std::filesystem::path path_;
  data::FileBytes file_;
  std::map<std::string, std::uint64_t> parts_;  ///< bytes by name
  std::string pickle_;
  bool is_big_endian_ = false;
  std::vector<Tensor> tensors_;
  std::vector<Place> places_;                  ///< [tensors]
  std::deque<std::vector<std::byte>> loaded_;  ///< the bytes of tensors
};

}  // namespace paceline::train
