#pragma once

/// CudaApi is a table of the CUDA runtime functions that the engine calls, declared without CUDA's headers.
///
/// The module paceline_cuda.so fills the table (module.cc, the only C++ file that includes CUDA's headers; it
/// asserts that the constants below are CUDA's). Tests fill one of their own, in which any call can fail.
/// Members have CUDA's names and meanings.

#include <cstddef>
#include <string>

#include "base/error.h"
#include "engine/cuda/kernels/kernel.h"

// CUDA's own names of what its handles point to.
struct CUstream_st;
struct CUevent_st;
struct CUgraph_st;
struct CUgraphExec_st;

namespace paceline::engine::cuda {

using CudaStatus = int;                       ///< cudaError_t
using CudaStreamHandle = CUstream_st*;        ///< cudaStream_t
using CudaEventHandle = CUevent_st*;          ///< cudaEvent_t
using CudaGraphHandle = CUgraph_st*;          ///< cudaGraph_t
using CudaGraphExecHandle = CUgraphExec_st*;  ///< cudaGraphExec_t

// The values of cudaError_t that this program distinguishes.
constexpr CudaStatus kCudaSuccess = 0;
constexpr CudaStatus kCudaErrorInvalidValue = 1;
constexpr CudaStatus kCudaErrorMemoryAllocation = 2;
constexpr CudaStatus kCudaErrorInsufficientDriver = 35;  ///< no libcuda, or one that is too old
constexpr CudaStatus kCudaErrorNoDevice = 100;
constexpr CudaStatus kCudaErrorInvalidDevice = 101;
constexpr CudaStatus kCudaErrorNotReady = 600;
constexpr CudaStatus kCudaErrorIllegalAddress = 700;
constexpr CudaStatus kCudaErrorLaunchFailure = 719;
constexpr CudaStatus kCudaErrorStreamCaptureUnsupported = 900;  ///< the first of the errors of captures
constexpr CudaStatus kCudaErrorStreamCaptureInvalidated = 901;
constexpr CudaStatus kCudaErrorStreamCaptureWrongThread = 908;  ///< the last of them

// Values of cudaDeviceAttr.
constexpr int kCudaDevAttrMultiProcessorCount = 16;
constexpr int kCudaDevAttrComputeCapabilityMajor = 75;
constexpr int kCudaDevAttrComputeCapabilityMinor = 76;

// Values of cudaMemcpyKind, and flags.
constexpr int kCudaMemcpyHostToDevice = 1;
constexpr int kCudaMemcpyDeviceToHost = 2;
constexpr int kCudaMemcpyDeviceToDevice = 3;
constexpr unsigned kCudaStreamNonBlocking = 1;
constexpr unsigned kCudaEventDefault = 0;
constexpr unsigned kCudaEventDisableTiming = 2;
constexpr unsigned kCudaHostAllocDefault = 0;
constexpr int kCudaStreamCaptureModeThreadLocal = 1;  ///< a cudaStreamCaptureMode

/// No pointer is null.
struct CudaApi {
  // What the module was built from, which open_cuda() compares with the program's own.
  std::size_t table_bytes;          ///< sizeof(CudaApi)
  int kernel_count;                 ///< kKernelCount
  const std::size_t* kernel_bytes;  ///< sizeof each kernel of kernels/table.h
  int built_with;                   ///< CUDART_VERSION: 13000 for 13.0

  // Versions: 13000 for 13.0. cudaDriverGetVersion gives the newest CUDA that the driver supports, 0 without
  // a driver.
  CudaStatus (*cudaDriverGetVersion)(int* version);
  CudaStatus (*cudaRuntimeGetVersion)(int* version);

  const char* (*cudaGetErrorName)(CudaStatus status);    ///< "cudaErrorIllegalAddress"
  const char* (*cudaGetErrorString)(CudaStatus status);  ///< "an illegal memory access was encountered"
  CudaStatus (*cudaGetLastError)();                      ///< also clears the error, unless it is_sticky()

  CudaStatus (*cudaGetDeviceCount)(int* count);
  CudaStatus (*cudaSetDevice)(int device);  ///< for the calling thread
  CudaStatus (*cudaDeviceGetAttribute)(int* value, int attribute, int device);
  CudaStatus (*cudaDeviceGetPCIBusId)(char* id, int bytes, int device);
  /// The name in cudaGetDeviceProperties; only the name, since the struct differs between versions of CUDA.
  CudaStatus (*device_name)(char* name, int bytes, int device);
  CudaStatus (*device_uuid)(unsigned char uuid[16], int device);  ///< likewise
  CudaStatus (*cudaMemGetInfo)(std::size_t* free, std::size_t* total);

  CudaStatus (*cudaMalloc)(void** memory, std::size_t bytes);
  CudaStatus (*cudaFree)(void* memory);
  CudaStatus (*cudaHostAlloc)(void** memory, std::size_t bytes, unsigned flags);
  CudaStatus (*cudaFreeHost)(void* memory);

  CudaStatus (*cudaDeviceGetStreamPriorityRange)(int* least, int* greatest);
  CudaStatus (*cudaStreamCreateWithPriority)(CudaStreamHandle* stream, unsigned flags, int priority);
  CudaStatus (*cudaStreamDestroy)(CudaStreamHandle stream);
  CudaStatus (*cudaStreamSynchronize)(CudaStreamHandle stream);
  CudaStatus (*cudaStreamWaitEvent)(CudaStreamHandle stream, CudaEventHandle event, unsigned flags);

  CudaStatus (*cudaEventCreateWithFlags)(CudaEventHandle* event, unsigned flags);
  CudaStatus (*cudaEventDestroy)(CudaEventHandle event);
  CudaStatus (*cudaEventRecord)(CudaEventHandle event, CudaStreamHandle stream);
  CudaStatus (*cudaEventSynchronize)(CudaEventHandle event);
  CudaStatus (*cudaEventQuery)(CudaEventHandle event);
  CudaStatus (*cudaEventElapsedTime)(float* milliseconds, CudaEventHandle begin, CudaEventHandle end);

  CudaStatus (*cudaMemcpyAsync)(void* dst, const void* src, std::size_t bytes, int kind,
                                CudaStreamHandle stream);
  CudaStatus (*cudaMemsetAsync)(void* dst, int value, std::size_t bytes, CudaStreamHandle stream);

  CudaStatus (*cudaStreamBeginCapture)(CudaStreamHandle stream, int mode);
  CudaStatus (*cudaStreamEndCapture)(CudaStreamHandle stream, CudaGraphHandle* graph);
  CudaStatus (*cudaGraphInstantiate)(CudaGraphExecHandle* exec, CudaGraphHandle graph,
                                     unsigned long long flags);
  CudaStatus (*cudaGraphDestroy)(CudaGraphHandle graph);
  CudaStatus (*cudaGraphLaunch)(CudaGraphExecHandle exec, CudaStreamHandle stream);
  CudaStatus (*cudaGraphExecDestroy)(CudaGraphExecHandle exec);

  /// Loads all kernels of kernels/table.h on the current device, which their first launches would do.
  CudaStatus (*load_kernels)();
  /// Enqueues kernel number `kernel` of kernels/table.h on `stream`. `arguments`: the kernel struct, `bytes`
  /// bytes, which are copied.
  CudaStatus (*launch)(int kernel, const void* arguments, std::size_t bytes, const Grid* grid,
                       CudaStreamHandle stream);
};

/// Whether every further call of this process would return the same error. The device's state is then lost
/// until the process ends.
[[nodiscard]] bool is_sticky(CudaStatus status);

/// Whether the error says that the call is not allowed in a capture, or that the capture has failed.
[[nodiscard]] constexpr bool is_of_capture(CudaStatus status) {
  return status >= kCudaErrorStreamCaptureUnsupported && status <= kCudaErrorStreamCaptureWrongThread;
}

/// "cudaMalloc failed on GPU 0, in step 12, op conv1: out of memory (cudaErrorMemoryAllocation)". Sticky
/// errors add that the process must end, and errors of a machine that is not set up what to do. `call`:
/// CUDA's function with its arguments, "cudaMalloc of 2097152 bytes"; `where`: "on GPU 0, in step 12, op
/// conv1".
[[nodiscard]] std::string describe_cuda_error(const CudaApi& api, CudaStatus status, const std::string& call,
                                              const std::string& where);

}  // namespace paceline::engine::cuda
