/// Fills the table of CUDA's functions (CudaApi), for the module paceline_cuda.so.
///
/// This is the only C++ file that includes CUDA's headers. It is not part of the program: with
/// kernels/device.cu and the static CUDA runtime it forms the module that load.h opens.

#include <cuda_runtime_api.h>

#include <array>
#include <cstdio>
#include <cstring>
#include <tuple>

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

cudaStream_t native(CudaStreamHandle stream) { return reinterpret_cast<cudaStream_t>(stream); }
cudaEvent_t native(CudaEventHandle event) { return reinterpret_cast<cudaEvent_t>(event); }
cudaGraph_t native(CudaGraphHandle graph) { return reinterpret_cast<cudaGraph_t>(graph); }
cudaGraphExec_t native(CudaGraphExecHandle exec) { return reinterpret_cast<cudaGraphExec_t>(exec); }

template <typename... Kernel>
constexpr auto sizes(const std::tuple<Kernel...>*) {
  return std::array<std::size_t, sizeof...(Kernel) + 1>{sizeof(Kernel)..., 0};  // an array must not be empty
}
constexpr auto kKernelBytes = sizes(static_cast<const Kernels*>(nullptr));

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

// Each entry is a function with plain types that calls CUDA's function.
const CudaApi kApi{
    .table_bytes = sizeof(CudaApi),
    .kernel_count = kKernelCount,
    .kernel_bytes = kKernelBytes.data(),
    .built_with = CUDART_VERSION,
    .cudaDriverGetVersion = [](int* version) -> CudaStatus { return ::cudaDriverGetVersion(version); },
    .cudaRuntimeGetVersion = [](int* version) -> CudaStatus { return ::cudaRuntimeGetVersion(version); },
    .cudaGetErrorName = [](CudaStatus status) { return ::cudaGetErrorName(cudaError_t(status)); },
    .cudaGetErrorString = [](CudaStatus status) { return ::cudaGetErrorString(cudaError_t(status)); },
    .cudaGetLastError = []() -> CudaStatus { return ::cudaGetLastError(); },
    .cudaGetDeviceCount = [](int* count) -> CudaStatus { return ::cudaGetDeviceCount(count); },
    .cudaSetDevice = [](int device) -> CudaStatus { return ::cudaSetDevice(device); },
    .cudaDeviceGetAttribute = [](int* value, int attribute, int device) -> CudaStatus {
      return ::cudaDeviceGetAttribute(value, cudaDeviceAttr(attribute), device);
    },
    .cudaDeviceGetPCIBusId = [](char* id, int bytes, int device) -> CudaStatus {
      return ::cudaDeviceGetPCIBusId(id, bytes, device);
    },
    .device_name = device_name,
    .device_uuid = device_uuid,
    .cudaMemGetInfo = [](std::size_t* free, std::size_t* total) -> CudaStatus {
      return ::cudaMemGetInfo(free, total);
    },
    .cudaMalloc = [](void** memory, std::size_t bytes) -> CudaStatus { return ::cudaMalloc(memory, bytes); },
    .cudaFree = [](void* memory) -> CudaStatus { return ::cudaFree(memory); },
    .cudaHostAlloc = [](void** memory, std::size_t bytes, unsigned flags) -> CudaStatus {
      return ::cudaHostAlloc(memory, bytes, flags);
    },
    .cudaFreeHost = [](void* memory) -> CudaStatus { return ::cudaFreeHost(memory); },
    .cudaDeviceGetStreamPriorityRange = [](int* least, int* greatest) -> CudaStatus {
      return ::cudaDeviceGetStreamPriorityRange(least, greatest);
    },
    .cudaStreamCreateWithPriority = [](CudaStreamHandle* stream, unsigned flags, int priority) -> CudaStatus {
      return ::cudaStreamCreateWithPriority(reinterpret_cast<cudaStream_t*>(stream), flags, priority);
    },
    .cudaStreamDestroy = [](CudaStreamHandle stream) -> CudaStatus {
      return ::cudaStreamDestroy(native(stream));
    },
    .cudaStreamSynchronize = [](CudaStreamHandle stream) -> CudaStatus {
      return ::cudaStreamSynchronize(native(stream));
    },
    .cudaStreamWaitEvent = [](CudaStreamHandle stream, CudaEventHandle event, unsigned flags) -> CudaStatus {
      return ::cudaStreamWaitEvent(native(stream), native(event), flags);
    },
    .cudaEventCreateWithFlags = [](CudaEventHandle* event, unsigned flags) -> CudaStatus {
      return ::cudaEventCreateWithFlags(reinterpret_cast<cudaEvent_t*>(event), flags);
    },
    .cudaEventDestroy = [](CudaEventHandle event) -> CudaStatus { return ::cudaEventDestroy(native(event)); },
    .cudaEventRecord = [](CudaEventHandle event, CudaStreamHandle stream) -> CudaStatus {
      return ::cudaEventRecord(native(event), native(stream));
    },
    .cudaEventSynchronize = [](CudaEventHandle event) -> CudaStatus {
      return ::cudaEventSynchronize(native(event));
    },
    .cudaEventQuery = [](CudaEventHandle event) -> CudaStatus { return ::cudaEventQuery(native(event)); },
    .cudaEventElapsedTime = [](float* milliseconds, CudaEventHandle begin, CudaEventHandle end)
        -> CudaStatus { return ::cudaEventElapsedTime(milliseconds, native(begin), native(end)); },
    .cudaMemcpyAsync = [](void* dst, const void* src, std::size_t bytes, int kind, CudaStreamHandle stream)
        -> CudaStatus { return ::cudaMemcpyAsync(dst, src, bytes, cudaMemcpyKind(kind), native(stream)); },
    .cudaMemsetAsync = [](void* dst, int value, std::size_t bytes, CudaStreamHandle stream) -> CudaStatus {
      return ::cudaMemsetAsync(dst, value, bytes, native(stream));
    },
    .cudaStreamBeginCapture = [](CudaStreamHandle stream, int mode) -> CudaStatus {
      return ::cudaStreamBeginCapture(native(stream), cudaStreamCaptureMode(mode));
    },
    .cudaStreamEndCapture = [](CudaStreamHandle stream, CudaGraphHandle* graph) -> CudaStatus {
      return ::cudaStreamEndCapture(native(stream), reinterpret_cast<cudaGraph_t*>(graph));
    },
    .cudaGraphInstantiate = [](CudaGraphExecHandle* exec, CudaGraphHandle graph,
                               unsigned long long flags) -> CudaStatus {
      return ::cudaGraphInstantiate(reinterpret_cast<cudaGraphExec_t*>(exec), native(graph), flags);
    },
    .cudaGraphDestroy = [](CudaGraphHandle graph) -> CudaStatus { return ::cudaGraphDestroy(native(graph)); },
    .cudaGraphLaunch = [](CudaGraphExecHandle exec, CudaStreamHandle stream) -> CudaStatus {
      return ::cudaGraphLaunch(native(exec), native(stream));
    },
    .cudaGraphExecDestroy = [](CudaGraphExecHandle exec) -> CudaStatus {
      return ::cudaGraphExecDestroy(native(exec));
    },
    .load_kernels = []() -> CudaStatus { return load_on_device(); },
    .launch = [](int kernel, const void* arguments, std::size_t bytes, const Grid* grid,
                 CudaStreamHandle stream) -> CudaStatus {
      return launch_on_device(kernel, arguments, bytes, *grid, native(stream));
    },
};

}  // namespace
}  // namespace paceline::engine::cuda

extern "C" const paceline::engine::cuda::CudaApi* paceline_cuda_api() {
  return &paceline::engine::cuda::kApi;
}
