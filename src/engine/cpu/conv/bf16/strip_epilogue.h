#pragma once

/// What a strip (kernels/bf16/tiles.h) does besides its products: it computes a batch norm's sums over the
/// pixels that it writes, and prefetches the memory of the next strip.

#include "engine/cpu/conv/norm_epilogue.h"
#include "engine/cpu/kernels/bf16/tiles.h"

namespace paceline::engine::cpu {

/// The sums of `epilogue` in the form that strips compute. `product`: row 0 of the result. Moments are around
/// the epilogue's shift, which the caller must have set.
[[nodiscard]] tiles::StripStats strip_stats(const Epilogue& epilogue, const void* product, int channels);

/// The memory of the next strip; sizes are in elements.
struct NextStrip {
  const std::uint16_t* from = nullptr;  ///< what it reads: `read` elements
  std::int64_t read = 0;
  std::uint16_t* product = nullptr;  ///< row 0 of the result; arrays for the sums have the same layout
  std::int64_t at = 0, written = 0;  ///< what it writes: `written` elements from product + at
};
/// Sets strip.ahead so that the strip prefetches all of `next`. `visits`: the number of weight tiles that it
/// multiplies, each of which prefetches some lines.
void fetch_next(tiles::Strip& strip, std::int64_t visits, const NextStrip& next);

}  // namespace paceline::engine::cpu
