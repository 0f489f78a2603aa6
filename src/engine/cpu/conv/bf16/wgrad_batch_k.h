#pragma once

/// The weights' gradient as products of bf16 tiles; see wgrad_batch_k.cc.

#include "engine/cpu/conv/kernel.h"
#include "engine/cpu/kernels/bf16/tiles.h"

namespace paceline::engine::cpu {

[[nodiscard]] std::unique_ptr<WgradKernel> make_wgrad_batch_k_kernel(const ConvShape& shape,
                                                                     const tiles::TileKernels& kernels);

}  // namespace paceline::engine::cpu
