#pragma once

/// Forward and backward data of images with short rows, and backward data with a stride of 2, as products of
/// bf16 tiles; see packed_images.cc.

#include "engine/cpu/conv/problem.h"

namespace paceline::engine::cpu {

/// Images side by side, so that their rows fill tiles of 16 pixels; 0: the shape is not computed so. It is
/// where 2 or 4 images are enough (backward with a stride of 2 also 1), channels are whole blocks, results
/// bf16, and weights and a group of images fit a near cache; a stride of 2 wants padding 1 and an even width.
[[nodiscard]] int images_side_by_side(const ConvShape& shape, Direction direction);

}  // namespace paceline::engine::cpu
