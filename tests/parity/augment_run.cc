// Augments an image for tests/parity/augment.py: reads uint8 [HEIGHT][WIDTH][CHANNELS] from standard input
// and writes what each operation of TrivialAugment makes of it, at each strength, with both signs.

#include <cstdio>
#include <cstdlib>
#include <exception>
#include <vector>

#include "data/trivial_augment.h"

int main(int count, char** words) {
  using namespace paceline::data;
  if (count != 4) {
    std::fprintf(stderr, "usage: augment_run HEIGHT WIDTH CHANNELS < PIXELS > RESULTS\n");
    return 2;
  }
  const ImageFormat format{
      .height = std::atoi(words[1]), .width = std::atoi(words[2]), .channels = std::atoi(words[3])};
  std::vector<std::uint8_t> image(static_cast<std::size_t>(format.bytes())), copy(image.size());
  if (std::fread(image.data(), 1, image.size(), stdin) != image.size()) return 1;
  for (int operation = 0; operation < static_cast<int>(kTrivialOperations.size()); ++operation)
    for (int strength = 0; strength < kTrivialStrengths; ++strength)
      for (const bool is_negative : {false, true}) {
        auto pixels = image;
        apply_trivial(format, {operation, strength, is_negative}, pixels, copy);
        if (std::fwrite(pixels.data(), 1, pixels.size(), stdout) != pixels.size()) return 1;
      }
}
