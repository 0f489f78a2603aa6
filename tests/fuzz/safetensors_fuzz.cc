/// Any bytes as a safetensors file: its header checked, every tensor touched.

#include <vector>

#include "base/error.h"
#include "input.h"
#include "train/checkpoint/safetensors.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace paceline;
  static const fuzz::Directory directory;
  try {
    const train::SafetensorsFile file(directory.write("a.safetensors", data, bytes));
    unsigned sum = 0;
    for (const auto& tensor : file.tensors()) {
      for (const auto byte : tensor.bytes) sum += static_cast<unsigned>(byte);
      if (tensor.dtype != base::DType::f32) continue;
      std::vector<float> values(tensor.bytes.size() / sizeof(float));
      file.copy_f32(tensor.name, tensor.shape, values);
    }
    if (file.find("no such tensor") != nullptr && sum == 0) std::abort();
  } catch (const base::Error&) {
  }
  return 0;
}
