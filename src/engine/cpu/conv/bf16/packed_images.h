#pragma once

/// Forward and backward data of images with short rows, and backward data with a stride of 2, as products of
/// bf16 tiles; see packed_images.cc.

#include "engine/cpu/conv/kernel.h"
#include "engine/cpu/kernels/bf16/tiles.h"

namespace paceline::engine::cpu {

/// Images side by side, so that their rows fill tiles of 16 pixels; 0: tile products do not compute this
/// shape so. They do where 2 or 4 images are enough (backward with a stride of 2 also 1), channels are whole
/// blocks, results bf16, and weights and a group of images fit a near cache; a stride of 2 wants padding 1
/// and an even width.
[[nodiscard]] int images_side_by_side(const ConvShape& shape, Direction direction,
                                      const tiles::TileKernels& kernels);

/// Precondition   images_side_by_side() > 0
[[nodiscard]] std::unique_ptr<ConvKernel> make_packed_images_kernel(const ConvShape& shape,
                                                                    Direction direction,
                                                                    const tiles::TileKernels& kernels);

}  // namespace paceline::engine::cpu
