#pragma once

/// Encodes images: small JPEGs for a report, JPEG and PNG for shards.

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "data/dataset.h"
#include "data/image/decode.h"

namespace paceline::data {

/// A JPEG of at most `side` pixels either way, with the shape of the image; smaller ones keep their size.
///
/// Shapes    pixels [height][width][channels], 1 or 3 channels
[[nodiscard]] std::string small_jpeg(const ImageFormat& format, std::span<const std::uint8_t> pixels,
                                     int side);

/// `image` with its longer side scaled down to `side`, as a JPEG of `quality`, 1 to 100, whose colours have
/// half the resolution, as PIL writes it.
[[nodiscard]] std::vector<std::uint8_t> scaled_jpeg(const RgbImage& image, int side, int quality);

/// The same pixels as a PNG.
///
/// Shapes    pixels [height][width][channels], 1 or 3 channels
[[nodiscard]] std::vector<std::uint8_t> to_png(const ImageFormat& format,
                                               std::span<const std::uint8_t> pixels);

}  // namespace paceline::data
