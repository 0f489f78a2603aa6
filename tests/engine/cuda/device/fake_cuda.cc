#include "engine/cuda/device/fake_cuda.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/error.h"
#include "engine/cuda/kernels/table.h"

namespace paceline::engine::cuda::test {
namespace {

FakeCuda* living = nullptr;

}  // namespace

CudaStatus FakeCuda::called(const char* name) {
  calls.emplace_back(name);
  if (is_sticky(last_error_)) return last_error_;
  if (failing_call > 0 && calls.size() == static_cast<std::size_t>(failing_call)) {
    last_error_ = failing_status;
    return failing_status;
  }
  return kCudaSuccess;
}

void FakeCuda::put(CudaStreamHandle stream, std::function<void()> work) {
  if (streams.count(stream) == 0) misuse = "a library's work on no stream";
  if (captured_ == nullptr) return work();
  if (stream != captured_) misuse = "a library's work on another stream in a capture";
  section_.push_back(std::move(work));
}

std::string FakeCuda::left() const {
  if (!misuse.empty()) return misuse;
  if (captured_ != nullptr) return "a capture that nobody ended";
  if (memory.empty() && pinned.empty() && streams.empty() && events.empty() && graphs.empty() &&
      graph_execs.empty())
    return "";
  return fmt::format("{} allocations, {} pinned ones, {} streams, {} events, {} graphs, {} started ones",
                     memory.size(), pinned.size(), streams.size(), events.size(), graphs.size(),
                     graph_execs.size());
}

struct FakeCudaFunctions {
  template <typename Handle>
  static CudaStatus make(const char* name, std::set<Handle>& all, Handle* handle) {
    if (const auto status = living->called(name); status != kCudaSuccess) return status;
    *handle = reinterpret_cast<Handle>(std::malloc(1));
    all.insert(*handle);
    return kCudaSuccess;
  }

  /// Given back, although the call may fail: CUDA frees what it can.
  template <typename Handle>
  static CudaStatus give_back(const char* name, std::set<Handle>& all, Handle handle) {
    const auto status = living->called(name);
    if (all.erase(handle) == 0)
      living->misuse = fmt::format("{} of what is none", name);
    else
      std::free(handle);
    return status;
  }

  /// A call on a stream: the stream is one of ours, and its device is current.
  static CudaStatus on_stream(const char* name, CudaStreamHandle stream) {
    if (living->streams.count(stream) == 0) living->misuse = fmt::format("{} on no stream", name);
    return living->called(name);
  }

  /// What only a stream that is not captured, or no stream, may do.
  static void outside_of_captures(const char* name) {
    if (living->captured_ != nullptr) living->misuse = fmt::format("{} in a capture", name);
  }
  /// Runs `work`, or keeps it for the graph that is captured.
  static CudaStatus put(const char* name, CudaStreamHandle stream, std::function<void()> work) {
    if (const auto status = on_stream(name, stream); status != kCudaSuccess) return status;
    if (living->captured_ != nullptr && living->refuses_captures) {
      living->capture_is_lost_ = true;
      living->last_error_ = kCudaErrorStreamCaptureUnsupported;
      return kCudaErrorStreamCaptureUnsupported;
    }
    living->put(stream, std::move(work));
    return kCudaSuccess;
  }
  static CudaStatus begin_capture(CudaStreamHandle stream, int mode) {
    outside_of_captures("cudaStreamBeginCapture");
    if (mode != kCudaStreamCaptureModeThreadLocal) living->misuse = "a capture in another mode";
    if (const auto status = on_stream("cudaStreamBeginCapture", stream); status != kCudaSuccess)
      return status;
    living->captured_ = stream;
    living->capture_is_lost_ = false;
    living->section_.clear();
    return kCudaSuccess;
  }
  /// The capture ends, although the call may fail.
  static CudaStatus end_capture(CudaStreamHandle stream, CudaGraphHandle* graph) {
    if (stream != living->captured_) living->misuse = "cudaStreamEndCapture of a stream that is not captured";
    living->captured_ = nullptr;
    *graph = nullptr;
    if (const auto status = on_stream("cudaStreamEndCapture", stream); status != kCudaSuccess) return status;
    if (living->capture_is_lost_) {
      living->last_error_ = kCudaErrorStreamCaptureInvalidated;
      return kCudaErrorStreamCaptureInvalidated;
    }
    *graph = reinterpret_cast<CudaGraphHandle>(std::malloc(1));
    living->graphs.insert(*graph);
    living->graph_work_[*graph] = std::move(living->section_);
    return kCudaSuccess;
  }
  static CudaStatus instantiate(CudaGraphExecHandle* exec, CudaGraphHandle graph, unsigned long long) {
    if (living->graphs.count(graph) == 0) living->misuse = "cudaGraphInstantiate of no graph";
    const auto status = make("cudaGraphInstantiate", living->graph_execs, exec);
    if (status == kCudaSuccess) living->exec_work_[*exec] = living->graph_work_[graph];
    return status;
  }
  static CudaStatus launch_graph(CudaGraphExecHandle exec, CudaStreamHandle stream) {
    outside_of_captures("cudaGraphLaunch");
    if (living->graph_execs.count(exec) == 0) living->misuse = "cudaGraphLaunch of none";
    const auto status = on_stream("cudaGraphLaunch", stream);
    if (status != kCudaSuccess) return status;
    ++living->graph_launches;
    for (const auto& work : living->exec_work_[exec]) work();
    return kCudaSuccess;
  }

  static CudaStatus with_event(const char* name, CudaEventHandle event) {
    if (living->events.count(event) == 0) living->misuse = fmt::format("{} of no event", name);
    return living->called(name);
  }

  static CudaStatus driver_version(int* version) {
    *version = living->driver_version;
    return living->called("cudaDriverGetVersion");
  }
  static CudaStatus runtime_version(int* version) {
    *version = 13000;
    return living->called("cudaRuntimeGetVersion");
  }
  static const char* error_name(CudaStatus status) {
    return status == kCudaErrorMemoryAllocation ? "cudaErrorMemoryAllocation"
           : status == kCudaErrorIllegalAddress ? "cudaErrorIllegalAddress"
                                                : "cudaErrorOfThisTest";
  }
  static const char* error_string(CudaStatus status) {
    return status == kCudaErrorMemoryAllocation ? "out of memory" : "the text of the error";
  }
  static CudaStatus last_error() {
    const auto last = living->last_error_;
    if (!is_sticky(last)) living->last_error_ = kCudaSuccess;
    return last;
  }
  static CudaStatus device_count(int* count) {
    *count = living->devices;
    if (const auto status = living->called("cudaGetDeviceCount"); status != kCudaSuccess) return status;
    return living->count_status;
  }
  static CudaStatus set_device(int device) {
    if (const auto status = living->called("cudaSetDevice"); status != kCudaSuccess) return status;
    if (device < 0 || device >= living->devices) return kCudaErrorInvalidDevice;
    living->current_device = device;
    return kCudaSuccess;
  }
  static CudaStatus attribute(int* value, int which, int) {
    *value = which == kCudaDevAttrMultiProcessorCount      ? 132
             : which == kCudaDevAttrComputeCapabilityMajor ? living->capability / 10
                                                           : living->capability % 10;
    return living->called("cudaDeviceGetAttribute");
  }
  static CudaStatus bus_id(char* id, int bytes, int device) {
    std::snprintf(id, static_cast<std::size_t>(bytes), "0000:%02X:00.0", device + 1);
    return living->called("cudaDeviceGetPCIBusId");
  }
  static CudaStatus name(char* name, int bytes, int) {
    std::snprintf(name, static_cast<std::size_t>(bytes), "Fake H100");
    return living->called("cudaGetDeviceProperties");
  }
  static CudaStatus uuid(unsigned char* uuid, int device) {
    for (int i = 0; i < 16; ++i)
      uuid[i] = static_cast<unsigned char>(living->has_uuids ? 16 * (device + 1) + i : 0);
    return living->called("cudaGetDeviceProperties");
  }
  static CudaStatus memory_info(std::size_t* free, std::size_t* total) {
    *total = living->memory_bytes;
    *free = living->memory_bytes - living->used_bytes;
    return living->called("cudaMemGetInfo");
  }
  static CudaStatus allocate(const char* name, std::set<void*>& all, void** memory, std::size_t bytes) {
    outside_of_captures(name);
    if (const auto status = living->called(name); status != kCudaSuccess) return status;
    if (living->used_bytes + bytes > living->memory_bytes) {
      living->last_error_ = kCudaErrorMemoryAllocation;
      return kCudaErrorMemoryAllocation;
    }
    // Whole pages: large areas that nobody writes cost nothing.
    *memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (living->fresh_byte != 0) std::memset(*memory, living->fresh_byte, bytes);
    all.insert(*memory);
    living->sizes_[*memory] = bytes;
    living->used_bytes += bytes;
    return kCudaSuccess;
  }
  static CudaStatus release(const char* name, std::set<void*>& all, void* memory) {
    const auto status = living->called(name);
    if (all.erase(memory) == 0) {
      living->misuse = fmt::format("{} of what is none", name);
      return status;
    }
    living->used_bytes -= living->sizes_[memory];
    ::munmap(memory, living->sizes_[memory]);
    living->sizes_.erase(memory);
    return status;
  }
  static CudaStatus priorities(int* least, int* greatest) {
    *least = 0;
    *greatest = -5;
    return living->called("cudaDeviceGetStreamPriorityRange");
  }
  static CudaStatus copy(void* dst, const void* src, std::size_t bytes, int, CudaStreamHandle stream) {
    return put("cudaMemcpyAsync", stream, [=] { std::memmove(dst, src, bytes); });
  }
  static CudaStatus fill(void* dst, int value, std::size_t bytes, CudaStreamHandle stream) {
    return put("cudaMemsetAsync", stream, [=] { std::memset(dst, value, bytes); });
  }
  static CudaStatus launch(int kernel, const void* arguments, std::size_t bytes, const Grid* grid,
                           CudaStreamHandle stream) {
    const auto* first = static_cast<const std::byte*>(arguments);
    return put("launch", stream, [kernel, copy = std::vector<std::byte>(first, first + bytes), grid = *grid] {
      if (living->run_kernel) living->run_kernel(kernel, copy.data(), grid);
    });
  }
  static CudaStatus stream_wait(CudaStreamHandle stream, CudaEventHandle event, unsigned) {
    if (living->events.count(event) == 0) living->misuse = "cudaStreamWaitEvent for no event";
    return on_stream("cudaStreamWaitEvent", stream);
  }
  static float elapsed(CudaEventHandle begin, CudaEventHandle end) {
    if (living->now_ms == 0) return 1;
    return static_cast<float>(living->recorded_ms_[end] - living->recorded_ms_[begin]);
  }
  static CudaStatus event_record(CudaEventHandle event, CudaStreamHandle stream) {
    living->recorded_ms_[event] = living->now_ms;
    if (living->events.count(event) == 0) living->misuse = "cudaEventRecord of no event";
    return on_stream("cudaEventRecord", stream);
  }

  static CudaApi table() {
    return {
        .table_bytes = sizeof(CudaApi),
        .kernel_count = kKernelCount,
        .kernel_bytes = kKernelBytes.data(),
        .built_with = 13000,
        .cudaDriverGetVersion = driver_version,
        .cudaRuntimeGetVersion = runtime_version,
        .cudaGetErrorName = error_name,
        .cudaGetErrorString = error_string,
        .cudaGetLastError = last_error,
        .cudaGetDeviceCount = device_count,
        .cudaSetDevice = set_device,
        .cudaDeviceGetAttribute = attribute,
        .cudaDeviceGetPCIBusId = bus_id,
        .device_name = name,
        .device_uuid = uuid,
        .cudaMemGetInfo = memory_info,
        .cudaMalloc = [](void** memory,
                         std::size_t bytes) { return allocate("cudaMalloc", living->memory, memory, bytes); },
        .cudaFree = [](void* memory) { return release("cudaFree", living->memory, memory); },
        .cudaHostAlloc = [](void** memory, std::size_t bytes,
                            unsigned) { return allocate("cudaHostAlloc", living->pinned, memory, bytes); },
        .cudaFreeHost = [](void* memory) { return release("cudaFreeHost", living->pinned, memory); },
        .cudaDeviceGetStreamPriorityRange = priorities,
        .cudaStreamCreateWithPriority =
            [](CudaStreamHandle* stream, unsigned, int) {
              return make("cudaStreamCreateWithPriority", living->streams, stream);
            },
        .cudaStreamDestroy =
            [](CudaStreamHandle stream) { return give_back("cudaStreamDestroy", living->streams, stream); },
        .cudaStreamSynchronize =
            [](CudaStreamHandle stream) {
              outside_of_captures("cudaStreamSynchronize");
              return on_stream("cudaStreamSynchronize", stream);
            },
        .cudaStreamWaitEvent = stream_wait,
        .cudaEventCreateWithFlags =
            [](CudaEventHandle* event, unsigned) {
              return make("cudaEventCreateWithFlags", living->events, event);
            },
        .cudaEventDestroy =
            [](CudaEventHandle event) { return give_back("cudaEventDestroy", living->events, event); },
        .cudaEventRecord = event_record,
        .cudaEventSynchronize =
            [](CudaEventHandle event) {
              outside_of_captures("cudaEventSynchronize");
              return with_event("cudaEventSynchronize", event);
            },
        .cudaEventQuery =
            [](CudaEventHandle event) {
              outside_of_captures("cudaEventQuery");
              const auto status = with_event("cudaEventQuery", event);
              return status == kCudaSuccess ? living->query_status : status;
            },
        .cudaEventElapsedTime =
            [](float* milliseconds, CudaEventHandle begin, CudaEventHandle end) {
              *milliseconds = FakeCudaFunctions::elapsed(begin, end);
              return with_event("cudaEventElapsedTime", begin);
            },
        .cudaMemcpyAsync = copy,
        .cudaMemsetAsync = fill,
        .cudaStreamBeginCapture = begin_capture,
        .cudaStreamEndCapture = end_capture,
        .cudaGraphInstantiate = instantiate,
        .cudaGraphDestroy =
            [](CudaGraphHandle graph) { return give_back("cudaGraphDestroy", living->graphs, graph); },
        .cudaGraphLaunch = launch_graph,
        .cudaGraphExecDestroy =
            [](CudaGraphExecHandle exec) {
              return give_back("cudaGraphExecDestroy", living->graph_execs, exec);
            },
        .load_kernels = [] { return living->called("load_kernels"); },
        .launch = launch,
    };
  }
};

FakeCuda::FakeCuda() : api_(FakeCudaFunctions::table()) {
  base::expects(living == nullptr, "one fake CUDA lives at a time");
  living = this;
}

FakeCuda::~FakeCuda() {
  for (const auto& [each, bytes] : sizes_) ::munmap(each, bytes);
  for (auto* each : streams) std::free(each);
  for (auto* each : events) std::free(each);
  for (auto* each : graphs) std::free(each);
  for (auto* each : graph_execs) std::free(each);
  living = nullptr;
}

}  // namespace paceline::engine::cuda::test
