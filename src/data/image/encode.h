#pragma once

/// Encodes an image of a data set as a small JPEG, for a report.

#include <cstdint>
#include <span>
#include <string>

#include "data/dataset.h"

namespace paceline::data {

/// A JPEG of at most `side` pixels either way, with the shape of the image; smaller ones keep their size.
///
/// Shapes    pixels [height][width][channels], 1 or 3 channels
[[nodiscard]] std::string small_jpeg(const ImageFormat& format, std::span<const std::uint8_t> pixels,
                                     int side);

}  // namespace paceline::data
