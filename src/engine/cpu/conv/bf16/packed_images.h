#pragma once

/// The condition of packed_images.cc, which computes forward and backward data of images with short rows, and
/// backward data with stride 2, by bf16 tiles.

#include "engine/cpu/conv/problem.h"

namespace paceline::engine::cpu {

/// Number of images that are packed side by side so that their rows fill tiles of 16 pixels; 0 if the shape
/// cannot be computed this way. It can if 2 or 4 images are enough (backward data with stride 2: also 1),
/// channels are whole blocks of 32, results are bf16, and weights and a group of images fit a near cache.
/// Stride 2 also needs padding 1 and an even width.
[[nodiscard]] int images_side_by_side(const ConvShape& shape, Direction direction);

}  // namespace paceline::engine::cpu
