#pragma once

/// A file of CIFAR-10's python version, which torchvision leaves in cifar-10-batches-py: a pickled dictionary
/// whose "data" is an array of bytes [images][3072] (red, green, blue plane) and whose "labels" is a list.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace paceline::data {

struct CifarPythonBatch {
  std::vector<std::uint8_t> labels;
  std::span<const std::uint8_t> pixels;  ///< [labels.size()][3072], inside the bytes of the file
};

/// Errors   Error(data) naming `path` and the offset of what is not in this form, a label above 9 included
[[nodiscard]] CifarPythonBatch read_cifar_python(const std::string& path,
                                                 std::span<const std::uint8_t> bytes);

}  // namespace paceline::data
