/// Any bytes as an archive of NumPy's arrays, and as one array.

#include <algorithm>
#include <vector>

#include "base/error.h"
#include "data/dataset.h"
#include "data/formats/arrays.h"
#include "input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace paceline;
  static const fuzz::Directory directory;
  const auto path = directory.write("set.npz", data, bytes).string();
  try {
    const auto source = data::open("npz:" + path + ",range=own");
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(source.train->format().bytes()));
    for (std::int64_t i = 0; i < std::min<std::int64_t>(source.train->size(), 100); ++i)
      (void)source.train->read(i, pixels);
  } catch (const base::Error&) {
  }
  try {
    (void)data::parse_npy("array", {data, bytes});
  } catch (const base::Error&) {
  }
  return 0;
}
