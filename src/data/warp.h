#pragma once

/// Rotation, shear and shift of a stored image: the augmentation of Keras's ImageDataGenerator.

#include <cstdint>
#include <span>

#include "base/rng.h"
#include "data/dataset.h"

namespace paceline::data {

/// Each is drawn evenly from - the value .. + the value; 0: not done.
struct WarpOptions {
  double rotate = 0;  ///< degrees
  double shear = 0;   ///< degrees: rows move sideways, by the sine of it times their distance from the middle
  double shift = 0;   ///< part of the height and, drawn apart, of the width
  [[nodiscard]] bool is_none() const { return rotate == 0 && shear == 0 && shift == 0; }
};

/// Which place of the image a place shows, both from the middle: source = matrix * (y, x) + offset.
struct WarpMap {
  double yy = 1, yx = 0, xy = 0, xx = 1;
  double y = 0, x = 0;
};

[[nodiscard]] WarpMap draw_warp(const WarpOptions& options, const ImageFormat& format, base::Rng& rng);

/// Writes to `dst` what `map` shows of `src`: between four pixels by their distances, beyond the edge the
/// edge's own pixels. Both hold an image of `format` and do not overlap.
void warp(const ImageFormat& format, const WarpMap& map, std::span<const std::uint8_t> src,
          std::span<std::uint8_t> dst);

}  // namespace paceline::data
