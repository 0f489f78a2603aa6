/// Any bytes as a tar archive of images: listing, arranging, reading every member.

#include <array>

#include "base/error.h"
#include "data/dataset.h"
#include "input.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace paceline;
  static const fuzz::Directory directory;
  try {
    const auto source = data::open("folder:" + directory.write("a.tar", data, bytes).string() + ",size=8");
    std::array<std::uint8_t, 3 * 8 * 8> pixels;
    for (std::int64_t i = 0; i < source.train->size(); ++i) {
      try {
        (void)source.train->read(i, pixels);
      } catch (const base::Error&) {
      }
    }
  } catch (const base::Error&) {
  }
  return 0;
}
