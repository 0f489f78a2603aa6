#pragma once

/// Backward weights of 3x3 convolutions as products of bf16 tiles over pixels and pairs of samples; see
/// wgrad_pixel_k.cc.

#include "engine/cpu/conv/kernel.h"
#include "engine/cpu/kernels/bf16/tiles.h"

namespace paceline::engine::cpu {

/// Whether tile products compute this shape's d_weight so: a 3x3 kernel, whole blocks of channels, and a
/// stride or more than a few pixels.
[[nodiscard]] bool fits_wgrad_pixel_k(const ConvShape& shape, const tiles::TileKernels& kernels);

/// Precondition   fits_wgrad_pixel_k()
[[nodiscard]] std::unique_ptr<ConvKernel> make_wgrad_pixel_k_kernel(const ConvShape& shape,
                                                                    const tiles::TileKernels& kernels);

}  // namespace paceline::engine::cpu
