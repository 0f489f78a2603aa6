#pragma once

/// Forward and backward data of 3x3 convolutions with stride 1 or 2 by Winograd's minimal filtering; see
/// winograd_kernel.cc.

#include <memory>

#include "engine/cpu/conv/kernel.h"
#include "engine/cpu/kernels/winograd/winograd.h"

namespace paceline::engine::cpu {

/// By the kernels of one instruction set: `kernels` outlives what is made.
[[nodiscard]] std::unique_ptr<WeightReader> make_winograd_reader(const ConvShape& shape, Direction direction,
                                                                 const winograd::WinogradKernels& kernels);

}  // namespace paceline::engine::cpu
