#pragma once

/// Forward and backward data of images with long rows as products of bf16 tiles; see pixel_rows.cc.

#include "engine/cpu/conv/kernel.h"
#include "engine/cpu/kernels/bf16/tiles.h"

namespace paceline::engine::cpu {

/// Whether tile products compute this shape so: rows that fill tiles of 16 pixels for three quarters at
/// least, whole blocks of channels, results in bf16.
[[nodiscard]] bool fits_pixel_rows(const ConvShape& shape, Direction direction,
                                   const tiles::TileKernels& kernels);

/// Precondition   fits_pixel_rows()
[[nodiscard]] std::unique_ptr<ConvKernel> make_pixel_rows_kernel(const ConvShape& shape, Direction direction,
                                                                 const tiles::TileKernels& kernels);

}  // namespace paceline::engine::cpu
