#pragma once

/// What a strip (rows of pixels that one call of a matrix kernel computes, kernels/bf16/tiles.h) does besides
/// its matrix products: it adds the pixels that it writes to the sums of the following batch norm, and
/// prefetches the memory of the next strip.

#include "engine/cpu/conv/norm_epilogue.h"
#include "engine/cpu/kernels/bf16/tiles.h"

namespace paceline::engine::cpu {

/// Where and how a strip accumulates the sums of `epilogue`. `product`: row 0 of the convolution's whole
/// result. The sums are of (x - shift) and its square, with the shift that the caller has set in `epilogue`.
[[nodiscard]] tiles::StripStats strip_stats(const Epilogue& epilogue, const void* product, int channels);

/// The memory of the next strip; sizes are in elements.
struct NextStrip {
  const std::uint16_t* from = nullptr;  ///< what it reads: `read` elements
  std::int64_t read = 0;
  std::uint16_t* product =
      nullptr;  ///< row 0 of the whole result; arrays that the sums read beside it have its layout
  std::int64_t at = 0, written = 0;  ///< what it writes: `written` elements from product + at
};
/// Sets strip.ahead so that the strip prefetches all of `next`. `visits`: the number of weight tiles that it
/// multiplies with; at each it prefetches an equal number of cache lines.
void fetch_next(tiles::Strip& strip, std::int64_t visits, const NextStrip& next);

}  // namespace paceline::engine::cpu
