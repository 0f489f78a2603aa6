// The kernels for a device: a wrapper that puts __syncthreads() between phases, and how they are started.

#include <cuda_runtime.h>

#include <type_traits>
#include <utility>

#include "engine/cuda/kernels/launch.h"
#include "engine/cuda/kernels/table.h"

namespace paceline::engine::cuda {
namespace {

// 1 block a multiprocessor is enough, unless a kernel says kLeastBlocks: the compiler may take registers for
// all that is on its way, and spills nothing to be let in with one block more.
template <typename Kernel, typename = void>
constexpr int kLeastBlocks = 1;
template <typename Kernel>
constexpr int kLeastBlocks<Kernel, std::void_t<decltype(Kernel::kLeastBlocks)>> = Kernel::kLeastBlocks;

template <typename Kernel>
__global__ void __launch_bounds__(kMostThreads, kLeastBlocks<Kernel>) run_kernel(const Kernel kernel) {
  extern __shared__ double shared[];  // double: aligned for all that kernels keep there
  const ThreadIndex at{static_cast<int>(blockIdx.x), static_cast<int>(gridDim.x),
                       static_cast<int>(threadIdx.x), static_cast<int>(blockDim.x)};
  const int phases = phases_of(kernel);
  run_phase(kernel, 0, at, reinterpret_cast<float*>(shared));
  for (int phase = 1; phase < phases; ++phase) {
    __syncthreads();
    run_phase(kernel, phase, at, reinterpret_cast<float*>(shared));
  }
}

template <std::size_t... number>
const void* function_of(int kernel, std::index_sequence<number...>) {
  static const void* const kFunctions[] = {
      reinterpret_cast<const void*>(run_kernel<std::tuple_element_t<number, Kernels>>)...};
  return kFunctions[kernel];
}
const void* function_of(int kernel) { return function_of(kernel, std::make_index_sequence<kKernelCount>{}); }

}  // namespace

int load_on_device() {
  for (int kernel = 0; kernel < kKernelCount; ++kernel) {
    cudaFuncAttributes attributes{};  // CUDA loads a kernel to answer
    const auto status = cudaFuncGetAttributes(&attributes, function_of(kernel));
    if (status != cudaSuccess) return status;
  }
  return cudaSuccess;
}

int launch_on_device(int kernel, const void* arguments, std::size_t bytes, const Grid& grid,
                     void* cuda_stream) {
  if (kernel < 0 || kernel >= kKernelCount || bytes != kKernelBytes[static_cast<std::size_t>(kernel)])
    return cudaErrorInvalidValue;
  if (grid.blocks == 0) return cudaSuccess;  // CUDA refuses what has nothing to do
  void* parameters[] = {const_cast<void*>(arguments)};
  return cudaLaunchKernel(function_of(kernel), dim3(static_cast<unsigned>(grid.blocks)),
                          dim3(static_cast<unsigned>(grid.threads)), parameters,
                          static_cast<std::size_t>(grid.shared_bytes),
                          static_cast<cudaStream_t>(cuda_stream));
}

}  // namespace paceline::engine::cuda
