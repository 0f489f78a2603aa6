#pragma once

/// How one stored image is augmented, and the second label of a mixed one. The data loader draws both; an
/// engine that keeps the images applies the draw. Plain C++17, since nvcc compiles it too.

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

/// The label of the image that was mixed into a sample's own: the sample's target is 1 - weight on its own
/// label and weight on this one.
struct SecondLabel {
  std::int32_t label = 0;
  float weight = 0;  ///< 0 .. 1; above 0.5 this label is the heavier one
};
static_assert(sizeof(SecondLabel) == 8, "likewise");

}  // namespace paceline::base
