#pragma once

/// Launches a kernel on a device. device.cu defines the function; module.cc puts it into the table CudaApi.

#include <cstddef>

#include "engine/cuda/kernels/kernel.h"

namespace paceline::engine::cuda {

/// Loads all kernels of kernels/table.h on the current device. A kernel that is not loaded yet is loaded by
/// its first launch, which may then wait for all work of the device. Returns a cudaError_t.
[[nodiscard]] int load_on_device();

/// Enqueues kernel number `kernel` of kernels/table.h on `cuda_stream` (a cudaStream_t) and returns at once.
/// Does nothing for a grid without blocks. `arguments`: the kernel struct of `bytes` bytes, which is copied.
/// Returns a cudaError_t; cudaErrorInvalidValue if number or size do not match the table.
[[nodiscard]] int launch_on_device(int kernel, const void* arguments, std::size_t bytes, const Grid& grid,
                                   void* cuda_stream);

}  // namespace paceline::engine::cuda
