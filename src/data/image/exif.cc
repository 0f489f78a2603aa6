#include <algorithm>
#include <string_view>
#include <utility>

#include "data/file_bytes.h"
#include "data/image/decode.h"

namespace paceline::data {
namespace {

using ExifBytes = std::span<const std::uint8_t>;

constexpr std::string_view kExif("Exif\0\0", 6);

}  // namespace

int exif_turn(ExifBytes exif) {
  constexpr std::uint32_t kOrientation = 0x0112, kShort = 3, kLong = 4;
  constexpr std::size_t kEntry = 12;
  if (as_chars(exif).starts_with(kExif)) exif = exif.subspan(kExif.size());
  const auto begin = as_chars(exif).substr(0, 4);
  if (begin != std::string_view("II*\0", 4) && begin != std::string_view("MM\0*", 4)) return 1;
  const auto has = [&](std::size_t at, std::size_t count) {
    return at <= exif.size() && count <= exif.size() - at;
  };
  const auto number = [&](std::size_t at, std::size_t count) {
    return number_at(exif, at, count, begin.front() == 'M');
  };
  if (!has(4, 4)) return 1;
  const std::size_t directory = number(4, 4);
  if (!has(directory, 2)) return 1;
  const std::size_t entries = number(directory, 2);
  int turn = 1;
  for (std::size_t i = 0; i < entries; ++i) {
    const auto at = directory + 2 + kEntry * i;
    if (!has(at, kEntry)) break;
    const auto type = number(at + 2, 2);
    if (number(at, 2) != kOrientation || number(at + 4, 4) != 1 || (type != kShort && type != kLong))
      continue;
    const auto value = number(at + 8, type == kShort ? 2 : 4);
    turn = value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return turn;
}

int jpeg_turn(ExifBytes jpeg) {
  constexpr std::uint8_t kApp1 = 0xe1, kScan = 0xda, kEnd = 0xd9;
  for (std::size_t at = 2; at + 4 <= jpeg.size();) {
    if (jpeg[at] != 0xff) {  // stray bytes between segments
      ++at;
      continue;
    }
    const auto marker = jpeg[at + 1];
    if (marker == 0xff || marker == 0 || marker == 1 || (marker >= 0xd0 && marker <= 0xd8)) {
      at += marker == 0xff ? 1 : 2;  // fill bytes, and markers without a length
      continue;
    }
    if (marker == kScan || marker == kEnd) break;
    const std::size_t length = std::size_t{jpeg[at + 2]} << 8 | jpeg[at + 3];
    if (length < 2 || length > jpeg.size() - at - 2) break;
    const auto segment = jpeg.subspan(at + 4, length - 2);
    if (marker == kApp1 && as_chars(segment).starts_with(kExif)) return exif_turn(segment);
    at += 2 + length;
  }
  return 1;
}

void turn_upright(RgbImage& image, int turn) {
  if (turn <= 1) return;
  const bool is_swapped = turn >= 5;
  const auto height = static_cast<std::size_t>(image.height), width = static_cast<std::size_t>(image.width);
  const auto rows = is_swapped ? width : height, columns = is_swapped ? height : width;
  // Of 5 to 8 the stored rows are columns. Where the first of either lies: the last for these.
  const bool is_bottom_up = turn == 3 || turn == 4 || turn == 7 || turn == 8;
  const bool is_right_left = turn == 2 || turn == 3 || turn == 6 || turn == 7;
  std::vector<std::uint8_t> upright(image.pixels.size());
  for (std::size_t y = 0; y < rows; ++y)
    for (std::size_t x = 0; x < columns; ++x) {
      const auto down = is_bottom_up ? rows - 1 - y : y, across = is_right_left ? columns - 1 - x : x;
      const auto from = is_swapped ? across * width + down : down * width + across;
      std::copy_n(image.pixels.begin() + static_cast<std::ptrdiff_t>(3 * from), 3,
                  upright.begin() + static_cast<std::ptrdiff_t>(3 * (y * columns + x)));
    }
  image.pixels = std::move(upright);
  image.height = static_cast<int>(rows);
  image.width = static_cast<int>(columns);
}

}  // namespace paceline::data
