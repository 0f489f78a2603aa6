/// Fills the table of CUDA's functions (CudaApi), for the module paceline_cuda.so.
///
/// This is the only C++ file that includes CUDA's headers. It is not part of the program: with
/// kernels/device.cu and the static CUDA runtime it forms the module that load.h opens.

#include <cuda_runtime_api.h>

#include <cstdio>
#include <cstring>

#include "engine/cuda/api/cuda.h"
#include "engine/cuda/kernels/launch.h"
#include "engine/cuda/kernels/table.h"

#if CUDART_VERSION < 12080
#error "Paceline needs the CUDA toolkit 12.8 or later"
#endif

namespace paceline::engine::cuda {
namespace {

static_assert(kCudaSuccess == cudaSuccess);
static_assert(kCudaErrorInvalidValue == cudaErrorInvalidValue);
static_assert(kCudaErrorMemoryAllocation == cudaErrorMemoryAllocation);
static_assert(kCudaErrorInsufficientDriver == cudaErrorInsufficientDriver);
static_assert(kCudaErrorNoDevice == cudaErrorNoDevice);
static_assert(kCudaErrorInvalidDevice == cudaErrorInvalidDevice);
static_assert(kCudaErrorNotReady == cudaErrorNotReady);
static_assert(kCudaErrorIllegalAddress == cudaErrorIllegalAddress);
static_assert(kCudaErrorLaunchFailure == cudaErrorLaunchFailure);
static_assert(kCudaErrorStreamCaptureUnsupported == cudaErrorStreamCaptureUnsupported);
static_assert(kCudaErrorStreamCaptureInvalidated == cudaErrorStreamCaptureInvalidated);
static_assert(kCudaErrorStreamCaptureWrongThread == cudaErrorStreamCaptureWrongThread);
static_assert(kCudaDevAttrMultiProcessorCount == cudaDevAttrMultiProcessorCount);
static_assert(kCudaDevAttrComputeCapabilityMajor == cudaDevAttrComputeCapabilityMajor);
static_assert(kCudaDevAttrComputeCapabilityMinor == cudaDevAttrComputeCapabilityMinor);
static_assert(kCudaMemcpyHostToDevice == cudaMemcpyHostToDevice);
static_assert(kCudaMemcpyDeviceToHost == cudaMemcpyDeviceToHost);
static_assert(kCudaMemcpyDeviceToDevice == cudaMemcpyDeviceToDevice);
static_assert(kCudaStreamNonBlocking == cudaStreamNonBlocking);
static_assert(kCudaEventDefault == cudaEventDefault);
static_assert(kCudaEventDisableTiming == cudaEventDisableTiming);
static_assert(kCudaHostAllocDefault == cudaHostAllocDefault);
static_assert(kCudaStreamCaptureModeThreadLocal == cudaStreamCaptureModeThreadLocal);
// The errors for which api/cuda.cc has a next step.
static_assert(cudaErrorInitializationError == 3 && cudaErrorStubLibrary == 34);
static_assert(cudaErrorDevicesUnavailable == 46 && cudaErrorNoKernelImageForDevice == 209);
static_assert(cudaErrorUnsupportedPtxVersion == 222 && cudaErrorSystemNotReady == 802);
static_assert(cudaErrorSystemDriverMismatch == 803 && cudaErrorCompatNotSupportedOnDevice == 804);
static_assert(cudaErrorUnknown == 999);
// The sticky errors of api/cuda.cc.
static_assert(cudaErrorECCUncorrectable == 214 && cudaErrorNvlinkUncorrectable == 220);
static_assert(cudaErrorLaunchTimeout == 702 && cudaErrorContextIsDestroyed == 709);
static_assert(cudaErrorAssert == 710 && cudaErrorHardwareStackError == 714);
static_assert(cudaErrorIllegalInstruction == 715 && cudaErrorMisalignedAddress == 716);
static_assert(cudaErrorInvalidAddressSpace == 717 && cudaErrorInvalidPc == 718);

CudaStatus device_name(char* name, int bytes, int device) {
  cudaDeviceProp properties{};
  const cudaError_t status = ::cudaGetDeviceProperties(&properties, device);
  if (status == cudaSuccess) std::snprintf(name, static_cast<std::size_t>(bytes), "%s", properties.name);
  return status;
}

CudaStatus device_uuid(unsigned char uuid[16], int device) {
  cudaDeviceProp properties{};
  const cudaError_t status = ::cudaGetDeviceProperties(&properties, device);
  static_assert(sizeof properties.uuid == 16);
  if (status == cudaSuccess) std::memcpy(uuid, &properties.uuid, sizeof properties.uuid);
  return status;
}

/// CUDA's function without CUDA's types; the parameters are those of the entry in the table.
template <auto kFunction, typename... Parameters>
CudaStatus plain(Parameters... parameters) {
  return kFunction(parameters...);
}

const CudaApi kApi{
    .table_bytes = sizeof(CudaApi),
    .kernel_count = kKernelCount,
    .kernel_bytes = kKernelBytes.data(),
    .built_with = CUDART_VERSION,
    .cudaDriverGetVersion = plain<::cudaDriverGetVersion>,
    .cudaRuntimeGetVersion = plain<::cudaRuntimeGetVersion>,
    .cudaGetErrorName = [](CudaStatus status) { return ::cudaGetErrorName(cudaError_t(status)); },
    .cudaGetErrorString = [](CudaStatus status) { return ::cudaGetErrorString(cudaError_t(status)); },
    .cudaGetLastError = plain<::cudaGetLastError>,
    .cudaGetDeviceCount = plain<::cudaGetDeviceCount>,
    .cudaSetDevice = plain<::cudaSetDevice>,
    .cudaDeviceGetAttribute = [](int* value, int attribute, int device) -> CudaStatus {
      return ::cudaDeviceGetAttribute(value, cudaDeviceAttr(attribute), device);
    },
    .cudaDeviceGetPCIBusId = plain<::cudaDeviceGetPCIBusId>,
    .device_name = device_name,
    .device_uuid = device_uuid,
    .cudaMemGetInfo = plain<::cudaMemGetInfo>,
    .cudaMalloc = plain<::cudaMalloc>,
    .cudaFree = plain<::cudaFree>,
    .cudaHostAlloc = plain<::cudaHostAlloc>,
    .cudaFreeHost = plain<::cudaFreeHost>,
    .cudaDeviceGetStreamPriorityRange = plain<::cudaDeviceGetStreamPriorityRange>,
    .cudaStreamCreateWithPriority = plain<::cudaStreamCreateWithPriority>,
    .cudaStreamDestroy = plain<::cudaStreamDestroy>,
    .cudaStreamSynchronize = plain<::cudaStreamSynchronize>,
    .cudaStreamWaitEvent = plain<::cudaStreamWaitEvent>,
    .cudaEventCreateWithFlags = plain<::cudaEventCreateWithFlags>,
    .cudaEventDestroy = plain<::cudaEventDestroy>,
    .cudaEventRecord = plain<::cudaEventRecord>,
    .cudaEventSynchronize = plain<::cudaEventSynchronize>,
    .cudaEventQuery = plain<::cudaEventQuery>,
    .cudaEventElapsedTime = plain<::cudaEventElapsedTime>,
    .cudaMemcpyAsync = [](void* dst, const void* src, std::size_t bytes, int kind, CudaStreamHandle stream)
        -> CudaStatus { return ::cudaMemcpyAsync(dst, src, bytes, cudaMemcpyKind(kind), stream); },
    .cudaMemsetAsync = plain<::cudaMemsetAsync>,
    .cudaStreamBeginCapture = [](CudaStreamHandle stream, int mode) -> CudaStatus {
      return ::cudaStreamBeginCapture(stream, cudaStreamCaptureMode(mode));
    },
    .cudaStreamEndCapture = plain<::cudaStreamEndCapture>,
    .cudaGraphInstantiate = plain<::cudaGraphInstantiate>,
    .cudaGraphDestroy = plain<::cudaGraphDestroy>,
    .cudaGraphLaunch = plain<::cudaGraphLaunch>,
    .cudaGraphExecDestroy = plain<::cudaGraphExecDestroy>,
    .load_kernels = load_on_device,
    .launch = [](int kernel, const void* arguments, std::size_t bytes, const Grid* grid,
                 CudaStreamHandle stream) -> CudaStatus {
      return launch_on_device(kernel, arguments, bytes, *grid, stream);
    },
};

}  // namespace
}  // namespace paceline::engine::cuda

extern "C" const paceline::engine::cuda::CudaApi* paceline_cuda_api() {
  return &paceline::engine::cuda::kApi;
}
