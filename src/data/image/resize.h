#pragma once

/// Scales a part of an RGB image to a fixed size.

#include <cstdint>
#include <span>
#include <vector>

#include "data/dataset.h"
#include "data/image/decode.h"

namespace paceline::data {

/// Scales `box` of `src` (in its pixels, may be fractional) to [height][width][3]. Each output pixel is the
/// average under a triangle two output pixels wide, or two input pixels when it enlarges: bilinear with
/// antialiasing, as PIL's resize(box=...) and torchvision do.
///
/// Weights are multiples of 2^-14 that add up to 1, and sums are integers, so a plain area keeps its value.
/// Buffers are reused from image to image.
///
/// Threads  one object per thread
class Resizer {
 public:
  void resize(const RgbImage& src, const Box& box, int height, int width, std::span<std::uint8_t> dst);

 private:
  /// For each output position along one axis: the inputs that it averages, and their weights.
  struct Taps {
    std::vector<int> first;             ///< [outputs]
    std::vector<int> count;             ///< [outputs]
    std::vector<std::int16_t> weights;  ///< [outputs][most]
    int most = 0;
    void set(double begin, double length, int inputs, int outputs);
  };

  Taps rows_, columns_;
  std::vector<std::int32_t> sums_;
  std::vector<std::uint8_t> row_;
};

}  // namespace paceline::data
