#pragma once

/// Draws one synthetic image in integer arithmetic: the same bits with every compiler and instruction set.

#include <cstdint>
#include <span>

#include "base/rng.h"

namespace paceline::data {

inline constexpr int kSide = 32;  ///< of the square image

/// The three cues of a class, each 0 .. 4.
struct Cues {
  int shape = 0;    ///< disc, square, triangle, cross, ring
  int texture = 0;  ///< stripes, checks, dots, bands, halves
  int scheme = 0;   ///< two colours of a wheel of five that are not neighbours
  bool operator==(const Cues&) const = default;
};

/// Draws an object with `cues`, its surroundings and noise; everything else is random, from `rng`.
///
/// Shapes   pixels uint8 [kSide][kSide][3]
void draw_synthetic(const Cues& cues, base::Rng& rng, std::span<std::uint8_t> pixels);

}  // namespace paceline::data
