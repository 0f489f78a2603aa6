#pragma once

/// Backward weights of 3x3 convolutions with stride 1 or 2 by Winograd's minimal filtering. winograd_wgrad.cc
/// explains the method.

#include <memory>

#include "engine/cpu/conv/kernel.h"
#include "engine/cpu/kernels/winograd/winograd.h"

namespace paceline::engine::cpu {

/// `kernels`: of one instruction set; they must outlive the result.
[[nodiscard]] std::unique_ptr<WgradKernel> make_winograd_wgrad(const ConvShape& shape,
                                                               const winograd::WinogradKernels& kernels);

}  // namespace paceline::engine::cpu
