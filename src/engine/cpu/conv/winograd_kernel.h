#pragma once

/// Forward and backward data of 3x3 convolutions with stride 1 or 2 by Winograd's minimal filtering.
/// winograd_kernel.cc explains the method.

#include <memory>

#include "engine/cpu/conv/kernel.h"
#include "engine/cpu/kernels/winograd/winograd.h"

namespace paceline::engine::cpu {

/// `kernels`: of one instruction set; they must outlive the result.
[[nodiscard]] std::unique_ptr<WeightReader> make_winograd_reader(const ConvShape& shape, Direction direction,
                                                                 const winograd::WinogradKernels& kernels);

}  // namespace paceline::engine::cpu
