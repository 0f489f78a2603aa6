#pragma once

/// A part of an RGB image, scaled to a fixed size.

#include <cstdint>
#include <span>
#include <vector>

#include "data/dataset.h"
#include "data/image/decode.h"

namespace paceline::data {

/// Scales `box` of `src` (in its pixels, fractions allowed) to [height][width][3], each output pixel being
/// the average under a triangle as wide as two output pixels, or two input pixels where it enlarges: bilinear
/// with antialiasing, as PIL's resize(box=...) and torchvision do.
///
/// Weights are whole multiples of 2^-14 that add up to 1, sums are whole numbers: a plain area keeps its
/// value.
///
/// Keeps its buffers from image to image.   Threads  one object a thread
class Resizer {
 public:
  void resize(const RgbImage& src, const Box& box, int height, int width, std::span<std::uint8_t> dst);

 private:
  /// For each output place along one axis: which inputs it averages, and their weights.
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
