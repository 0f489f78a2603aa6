#pragma once

/// Rotation, shear and shift of an image, as in Keras's ImageDataGenerator.

#include <cstdint>
#include <span>

#include "base/rng.h"
#include "data/dataset.h"

namespace paceline::data {

/// Each value is drawn uniformly from -value .. +value; 0: off.
struct WarpOptions {
  double rotate = 0;  ///< degrees
  double shear = 0;   ///< degrees: rows move sideways by sin(shear) times their distance from the middle
  double shift = 0;   ///< as part of the height and, drawn separately, of the width
  [[nodiscard]] bool is_none() const { return rotate == 0 && shear == 0 && shift == 0; }
};

/// Maps output to source coordinates, both from the middle: source = matrix * (y, x) + offset.
struct WarpMap {
  double yy = 1, yx = 0, xy = 0, xx = 1;
  double y = 0, x = 0;
};

[[nodiscard]] WarpMap draw_warp(const WarpOptions& options, const ImageFormat& format, base::Rng& rng);

/// Applies `map` to `src` and writes `dst`: bilinear between pixels; beyond the edge the edge pixels repeat.
/// Both hold an image of `format` and do not overlap.
void warp(const ImageFormat& format, const WarpMap& map, std::span<const std::uint8_t> src,
          std::span<std::uint8_t> dst);

}  // namespace paceline::data
