#pragma once

/// The weights of forward and backward data as blocks of bf16 tiles.

#include "engine/cpu/conv/bf16/window.h"
#include "engine/cpu/kernels/bf16/tiles.h"

namespace paceline::engine::cpu {

/// Flat weights (PyTorch's order, float) -> [block of channels out][tap][block of channels in][2][16
/// pairs][16][2], in and out as the window's `from` and `to` have them. Room: 2 bytes for each element of all
/// blocks, whole ones. Those of `tile` only are read and written. `next` as ConvKernel::pack_tile
/// has it.
void pack_tile_weights(const TileWindow& window, const tiles::TileKernels& kernels, const float* weights,
                       const WeightTile& tile, const float* next, void* packed);

}  // namespace paceline::engine::cpu
