#pragma once

/// What strips (kernels/tiles.h) do while the tile unit computes: take a batch norm's sums of what they
/// write, and fetch what the next one reads and writes.

#include "engine/cpu/conv/norm_epilogue.h"
#include "engine/cpu/kernels/bf16/tiles.h"

namespace paceline::engine::cpu {

/// `product`: where the product's first row lies. Moments are around the epilogue's shift.
[[nodiscard]] tiles::StripStats strip_stats(const Epilogue& epilogue, const void* product, int channels);

/// What the next strip wants: runs of memory, in elements.
struct NextStrip {
  const std::uint16_t* from = nullptr;
  std::int64_t read = 0;
  std::uint16_t* product = nullptr;  ///< its first row; what the sums read lies alike
  std::int64_t at = 0, written = 0;  ///< the run, behind `product`
};
/// Sets strip.ahead, so that `visits` times of looking fetch all of it.
void fetch_next(tiles::Strip& strip, std::int64_t visits, const NextStrip& next);

}  // namespace paceline::engine::cpu
