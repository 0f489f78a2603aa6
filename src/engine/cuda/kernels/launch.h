#pragma once

/// How a kernel is started on a device: device.cu defines it, module.cc puts it into the table of functions.

#include <cstddef>

#include "engine/cuda/kernels/kernel.h"

namespace paceline::engine::cuda {

/// Puts kernel number `kernel` of kernels/table.h on `cuda_stream` (a cudaStream_t) and returns at once.
/// A grid without blocks is nothing to do. `arguments`: the kernel's struct of `bytes` bytes, which is
/// copied. Returns a cudaError_t; cudaErrorInvalidValue for a number or a size that is not in the table.
[[nodiscard]] int launch_on_device(int kernel, const void* arguments, std::size_t bytes, const Grid& grid,
                                   void* cuda_stream);

}  // namespace paceline::engine::cuda
