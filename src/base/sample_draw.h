#pragma once

/// How one stored image is augmented. The data loader draws it; an engine that keeps the images applies it.
/// Plain C++17, since nvcc compiles it too.

#include <cstdint>

namespace paceline::base {

/// 16 bytes, copied to a device as they are. A sample with its label is 20 bytes.
struct SampleDraw {
  std::int32_t index = 0;        ///< of the image among the stored ones
  std::int32_t shift_y = 0;      ///< row y shows row y + shift_y of the image
  std::int32_t shift_x = 0;      ///< likewise columns, before they are mirrored
  std::int16_t is_mirrored = 0;  ///< 1: columns in the opposite order
  std::int16_t reflects = 0;     ///< 1: pixels beyond the edge mirror the image; 0: they are black
  bool operator==(const SampleDraw& other) const {
    return index == other.index && shift_y == other.shift_y && shift_x == other.shift_x &&
           is_mirrored == other.is_mirrored && reflects == other.reflects;
  }
};
static_assert(sizeof(SampleDraw) == 16, "nothing but these goes to the device");

}  // namespace paceline::base
