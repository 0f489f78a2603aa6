#pragma once

/// How a stored image is shown to the network: what data draws for each sample, and what an engine that keeps
/// the images follows. Plain C++17, which nvcc compiles too.

#include <cstdint>

namespace paceline::base {

/// 16 bytes, which go to a device as they are; with its label a sample takes 20.
struct SampleDraw {
  std::int32_t index = 0;        ///< of the image among those that are stored
  std::int32_t shift_y = 0;      ///< row y shows row y + shift_y of the image
  std::int32_t shift_x = 0;      ///< likewise columns, before they are mirrored
  std::int16_t is_mirrored = 0;  ///< 1: columns in the opposite order
  std::int16_t reflects = 0;     ///< 1: beyond its edge the image mirrored there; 0: black
  bool operator==(const SampleDraw& other) const {
    return index == other.index && shift_y == other.shift_y && shift_x == other.shift_x &&
           is_mirrored == other.is_mirrored && reflects == other.reflects;
  }
};
static_assert(sizeof(SampleDraw) == 16, "nothing but these goes to the device");

}  // namespace paceline::base
