/// Any bytes as IDX files. The first byte says whether they are packed (.gz), the second where the images end
/// and the labels begin.

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "data/dataset.h"
#include "input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace paceline;
  if (bytes < 2) return 0;
  static const fuzz::Directory plain, packed;
  const bool gzip = (data[0] & 1) != 0;
  const auto& directory = gzip ? packed : plain;
  const std::string ending = gzip ? ".gz" : "";
  const std::size_t images = (bytes - 2) * data[1] / 255;
  for (const std::string part : {"train", "t10k"}) {
    (void)directory.write(part + "-images-idx3-ubyte" + ending, data + 2, images);
    (void)directory.write(part + "-labels-idx1-ubyte" + ending, data + 2 + images, bytes - 2 - images);
  }
  try {
    const auto source = data::open("mnist:" + directory.path().string());
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(source.train->format().bytes()));
    for (std::int64_t i = 0; i < std::min<std::int64_t>(source.train->size(), 100); ++i)
      (void)source.train->read(i, pixels);
  } catch (const base::Error&) {
  }
  return 0;
}
