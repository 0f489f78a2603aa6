#pragma once

/// Packs the weights of forward and backward data into blocks of bf16 tiles.

#include "engine/cpu/conv/bf16/window.h"
#include "engine/cpu/kernels/bf16/tiles.h"

namespace paceline::engine::cpu {

/// Rounds flat weights (float, PyTorch's order) to bf16 and writes them to `packed` as [block of output
/// channels][tap][block of input channels][2][16 pairs][16][2]. Input and output are window.from and
/// window.to; blocks are whole, 2 bytes an element. Touches only the weights of `tile`. `next` as in
/// WeightReader::pack_tile().
void pack_tile_weights(const TileWindow& window, const tiles::TileKernels& kernels, const float* weights,
                       const WeightTile& tile, const float* next, void* packed);

}  // namespace paceline::engine::cpu
