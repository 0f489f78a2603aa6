#pragma once

/// How one synthetic image is drawn. All in whole numbers: the same bits with every compiler and instruction
/// set.

#include <cstdint>
#include <span>

#include "base/rng.h"
#include "data/formats/synthetic.h"

namespace paceline::data {

inline constexpr int kSide = 32;  ///< of the square image

/// Draws an object with `cues`, its surroundings and the noise; everything else about them comes from `rng`.
///
/// Shapes   pixels uint8 [kSide][kSide][3]
void draw_synthetic(const Cues& cues, base::Rng& rng, std::span<std::uint8_t> pixels);

}  // namespace paceline::data
