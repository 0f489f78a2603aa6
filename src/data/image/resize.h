#pragma once

/// Scales a part of an image.

#include <algorithm>
#include <cstdint>
#include <span>
#include <vector>

#include "data/dataset.h"
#include "data/image/decode.h"

namespace paceline::data {

/// `box` and what Resizer averages beside it, at most, when it becomes `height` x `width` pixels: as much as
/// one of these has on each side.
[[nodiscard]] constexpr Box with_surroundings(const Box& box, int height, int width) {
  const double down = box.height / height, across = box.width / width;
  return {.top = box.top - down,
          .left = box.left - across,
          .height = box.height + 2 * down,
          .width = box.width + 2 * across};
}

/// Scales `box` of `src` (in its pixels, may be fractional) to [height][width][3]. Each output pixel is the
/// average under a triangle two output pixels wide, or two input pixels when it enlarges: bilinear with
/// antialiasing, as PIL's resize(box=...) and torchvision do. Sums are of integers.
///
/// Buffers are reused from image to image.
///
/// Threads  one object per thread
class Resizer {
 public:
  /// At most one level from what PIL gives, in three quarters of the time. A plain area keeps its value.
  void resize(const RgbImage& src, const Box& box, int height, int width, std::span<std::uint8_t> dst) {
    resize(src, {.height = src.height, .width = src.width}, box, height, width, dst);
  }
  /// The same of an image of which `src` is the part `part`. `box` is in pixels of the image.
  ///
  /// Requires  `src` has all of with_surroundings(box) that the image has, and two pixels more on each side
  void resize(const RgbImage& src, const PartOf& part, const Box& box, int height, int width,
              std::span<std::uint8_t> dst);
  /// The very pixels that PIL gives: its weights (multiples of 2^-22), along rows first.
  void resize_as_pil(const RgbImage& src, const Box& box, int height, int width, std::span<std::uint8_t> dst);

 private:
  /// For each output position along one axis: the inputs that it averages, and their weights.
  struct Taps {
    std::vector<int> first;             ///< [outputs]
    std::vector<int> count;             ///< [outputs]
    std::vector<std::int32_t> weights;  ///< [outputs][most], 0 behind the last
    int most = 0;
    /// Weights are multiples of 2^-bits, each rounded by itself.
    void set(double begin, double length, int inputs, int outputs, int bits);
    /// Changes the largest weight of each output so that all of it add up to 1.
    void make_sums_one(int bits);
    [[nodiscard]] int end() const { return first.back() + count.back(); }  ///< behind the last input
    [[nodiscard]] std::size_t largest_count() const {
      return static_cast<std::size_t>(*std::max_element(count.begin(), count.end()));
    }
    /// Two weights in one number, [outputs][returned], the first in its lower half.
    [[nodiscard]] std::size_t pair_weights(std::vector<std::int32_t>& pairs) const;
    [[nodiscard]] const std::int32_t* weights_of(std::size_t output) const {
      return weights.data() + output * static_cast<std::size_t>(most);
    }
  };

  Taps rows_, columns_;
  std::vector<std::int32_t> pairs_;
  std::vector<std::uint8_t> row_, narrowed_;
};

}  // namespace paceline::data
