#pragma once

/// Reads a file of CIFAR-10's Python version, as torchvision downloads it to cifar-10-batches-py: a pickled
/// dictionary with "data", a byte array [images][3072] (red, green, blue plane), and "labels", a list.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace paceline::data {

struct CifarPythonBatch {
  std::vector<std::uint8_t> labels;
  std::span<const std::uint8_t> pixels;  ///< [labels.size()][3072], inside the bytes of the file
};

/// Errors   Error(data) naming `path` and the offset of what does not have this form; labels are at most 9
[[nodiscard]] CifarPythonBatch read_cifar_python(const std::string& path,
                                                 std::span<const std::uint8_t> bytes);

}  // namespace paceline::data
