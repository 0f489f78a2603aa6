/// Any bytes as a file of CIFAR-10 and of CIFAR-100, for training and test at once.

#include <array>

#include "base/error.h"
#include "data/dataset.h"
#include "input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace paceline;
  static const fuzz::Directory directory;
  for (const char* name : {"data_batch_1.bin", "data_batch_2.bin", "data_batch_3.bin", "data_batch_4.bin",
                           "data_batch_5.bin", "test_batch.bin", "train.bin", "test.bin"})
    (void)directory.write(name, data, bytes);
  for (const char* format : {"cifar10:", "cifar100:"}) try {
      const auto source = data::open(format + directory.path().string());
      std::array<std::uint8_t, 3072> pixels;
      for (std::int64_t i = 0; i < source.train->size(); ++i) (void)source.train->read(i, pixels);
    } catch (const base::Error&) {
    }
  return 0;
}
