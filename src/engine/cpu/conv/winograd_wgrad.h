#pragma once

/// The weights' gradient of 3x3 convolutions with stride 1 or 2 by Winograd's minimal filtering; see
/// winograd_wgrad.cc.

#include <memory>

#include "engine/cpu/conv/kernel.h"
#include "engine/cpu/kernels/winograd/winograd.h"

namespace paceline::engine::cpu {

/// By the kernels of one instruction set: `kernels` outlives what is made.
[[nodiscard]] std::unique_ptr<WgradKernel> make_winograd_wgrad(const ConvShape& shape,
                                                               const winograd::WinogradKernels& kernels);

}  // namespace paceline::engine::cpu
