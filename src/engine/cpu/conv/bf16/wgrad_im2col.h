#pragma once

/// The weights' gradient of a convolution over few channels, as a dense layer's over pixels; see
/// unfolded_gradient.cc.

#include "engine/cpu/conv/kernel.h"
#include "engine/cpu/kernels/bf16/tiles.h"

namespace paceline::engine::cpu {

/// Whether tile products compute this shape's d_weight so: it has few channels, and more than one tap to fill
/// the tiles with instead.
[[nodiscard]] bool has_unfolded_gradient(const ConvShape& shape);

/// Precondition   has_unfolded_gradient()
[[nodiscard]] std::unique_ptr<ConvKernel> make_unfolded_gradient_kernel(const ConvShape& shape,
                                                                        const tiles::TileKernels& kernels);

}  // namespace paceline::engine::cpu
