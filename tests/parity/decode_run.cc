// Decodes image files for tests/parity/decode.py: each file named becomes FILE.ppm, or a line FILE: why not.
// A word range=own or range=LOW:HIGH is the range of the files after it.
//
// With `--resize TOP LEFT HEIGHT WIDTH ROWS COLUMNS` before the files it scales that part of each:
// FILE.fast.ppm as for training, FILE.pil.ppm as for evaluation.

#include <cstdio>
#include <exception>
#include <optional>
#include <string>
#include <string_view>

#include "base/file.h"
#include "data/image/resize.h"

namespace {

using paceline::data::RgbImage;

void write(const RgbImage& image, const std::string& path) {
  const auto ppm = paceline::data::to_ppm(image);
  paceline::base::write_file(path, std::string_view(reinterpret_cast<const char*>(ppm.data()), ppm.size()));
}

void write_resized(const RgbImage& image, char** words, const std::string& path) {
  const paceline::data::Box box{.top = std::stod(words[0]),
                                .left = std::stod(words[1]),
                                .height = std::stod(words[2]),
                                .width = std::stod(words[3])};
  RgbImage small{.height = std::stoi(words[4]), .width = std::stoi(words[5]), .pixels = {}};
  small.pixels.resize(3 * static_cast<std::size_t>(small.height) * static_cast<std::size_t>(small.width));
  paceline::data::Resizer resizer;
  resizer.resize(image, box, small.height, small.width, small.pixels);
  write(small, path + ".fast.ppm");
  resizer.resize_as_pil(image, box, small.height, small.width, small.pixels);
  write(small, path + ".pil.ppm");
}

}  // namespace

int main(int count, char** words) {
  paceline::data::ImageDecoder decoder;
  RgbImage image;
  std::optional<paceline::data::Range> range;
  constexpr std::string_view kRange = "range=";
  const bool is_resized = count > 8 && std::string_view(words[1]) == "--resize";
  for (int i = is_resized ? 8 : 1; i < count; ++i) try {
      if (const std::string_view word = words[i]; word.starts_with(kRange)) {
        range = paceline::data::range_named(word.substr(kRange.size()));
        continue;
      }
      const auto text = paceline::base::read_file(words[i]);
      const std::span bytes(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
      decoder.decode(bytes, decoder.read_header(bytes), 1, image, range);
      if (is_resized)
        write_resized(image, words + 2, words[i]);
      else
        write(image, std::string(words[i]) + ".ppm");
    } catch (const std::exception& error) {
      std::printf("%s: %s\n", words[i], error.what());
    }
  return 0;
}
