#pragma once

/// Backward weights by bf16 tiles whose inner dimension is the batch. wgrad_batch_k.cc explains the method;
/// wgrad_im2col.cc uses the kernel too.

#include "engine/cpu/conv/kernel.h"
#include "engine/cpu/kernels/bf16/tiles.h"

namespace paceline::engine::cpu {

/// `kernels` must outlive the result.
[[nodiscard]] std::unique_ptr<WgradKernel> make_wgrad_batch_k_kernel(const ConvShape& shape,
                                                                     const tiles::TileKernels& kernels);

}  // namespace paceline::engine::cpu
