/// Any bytes as an image: header, decoding at two scales and in part, resizing, values of 16 bits scaled.
/// Only BrokenImage may come out.

#include <algorithm>
#include <array>

#include "data/dataset.h"
#include "data/image/decode.h"
#include "data/image/resize.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  using namespace paceline::data;
  const std::span<const std::uint8_t> file(data, bytes);
  static ImageDecoder decoder;
  static RgbImage image;
  static Resizer resizer;
  std::array<std::uint8_t, 3 * 16 * 16> dst;
  try {
    const ImageHeader header = decoder.read_header(file);
    // What a header may promise is bounded by the length of the file; what is worth an hour of fuzzing is
    // less.
    if (std::int64_t{header.height} * header.width > 1 << 22) return 0;
    for (const double scale : {1.0, 0.2}) {
      decoder.decode(file, header, scale, image);
      const Box whole{.height = static_cast<double>(image.height), .width = static_cast<double>(image.width)};
      resizer.resize(image, whole, 16, 16, dst);
      resizer.resize_as_pil(image, whole, 16, 16, dst);
    }
    const Box middle{.top = header.height / 4.0,
                     .left = header.width / 4.0,
                     .height = header.height / 2.0,
                     .width = header.width / 2.0};
    const PartOf part = decoder.decode_part(file, header, 1, with_surroundings(middle, 16, 16), image);
    resizer.resize(image, part, middle, 16, 16, dst);
    decoder.decode(file, header, 1, image, Range{});
  } catch (const BrokenImage&) {
  }
  return 0;
}
