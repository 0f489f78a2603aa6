/// Any bytes as a file of CIFAR-10's python version.

#include <array>

#include "base/error.h"
#include "data/dataset.h"
#include "input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace paceline;
  static const fuzz::Directory directory;
  for (const char* name :
       {"data_batch_1", "data_batch_2", "data_batch_3", "data_batch_4", "data_batch_5", "test_batch"})
    (void)directory.write(name, data, bytes);
  try {
    const auto source = data::open("cifar10:" + directory.path().string());
    std::array<std::uint8_t, 3072> pixels;
    for (std::int64_t i = 0; i < source.train->size(); ++i) (void)source.train->read(i, pixels);
  } catch (const base::Error&) {
  }
  return 0;
}
