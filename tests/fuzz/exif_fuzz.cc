/// Any bytes as EXIF data and as a JPEG that holds some.

#include <cstdlib>

#include "data/image/decode.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace paceline::data;
  for (const int turn : {exif_turn({data, bytes}), jpeg_turn({data, bytes})}) {
    if (turn < 1 || turn > 8) std::abort();
    RgbImage image{.height = 2, .width = 3, .pixels = std::vector<std::uint8_t>(18)};
    turn_upright(image, turn);
    if (image.height * image.width != 6 || image.pixels.size() != 18) std::abort();
  }
  return 0;
}
