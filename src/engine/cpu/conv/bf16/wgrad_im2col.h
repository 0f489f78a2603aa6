#pragma once

/// The weights' gradient of a convolution over few channels, as a dense layer's over pixels; see
/// wgrad_im2col.cc.

#include "engine/cpu/conv/kernel.h"
#include "engine/cpu/kernels/bf16/tiles.h"

namespace paceline::engine::cpu {

/// Whether tile products compute this shape's d_weight so: it has few channels, and more than one tap to fill
/// the tiles with instead.
[[nodiscard]] bool fits_wgrad_im2col(const ConvShape& shape);

/// Precondition   fits_wgrad_im2col()
[[nodiscard]] std::unique_ptr<ConvKernel> make_wgrad_im2col_kernel(const ConvShape& shape,
                                                                   const tiles::TileKernels& kernels);

}  // namespace paceline::engine::cpu
