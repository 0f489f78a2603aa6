// Decodes image files for tests/parity/decode.py: each file named becomes FILE.ppm, or a line FILE: why not.

#include <cstdio>
#include <exception>

#include "base/file.h"
#include "data/image/decode.h"

int main(int count, char** words) {
  paceline::data::ImageDecoder decoder;
  paceline::data::RgbImage image;
  for (int i = 1; i < count; ++i) try {
      const auto text = paceline::base::read_file(words[i]);
      const std::span bytes(reinterpret_cast<const std::uint8_t*>(text.data()), text.size());
      decoder.decode(bytes, decoder.read_header(bytes), 1, image);
      const auto ppm = paceline::data::to_ppm(image);
      paceline::base::write_file(std::string(words[i]) + ".ppm",
                                 std::string_view(reinterpret_cast<const char*>(ppm.data()), ppm.size()));
    } catch (const std::exception& error) {
      std::printf("%s: %s\n", words[i], error.what());
    }
  return 0;
}
