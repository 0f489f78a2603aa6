#include "cuda_probe/gpu.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <utility>

#include "base/error.h"
#include "engine/cuda/conv_problems.h"
#include "engine/cuda/kernels/kernel.h"
#include "engine/cuda/runtime/load.h"
#include "graph/zoo.h"

namespace paceline::probe {
namespace {

/// In a build's tree the module lies one folder above the probe, elsewhere beside it.
const cuda::CudaApi& open_module() {
  std::filesystem::path folder = base::module_path(cuda::kModule).parent_path();
  if (!std::filesystem::exists(folder / cuda::kModule.file) &&
      std::filesystem::exists(folder.parent_path() / cuda::kModule.file))
    folder = folder.parent_path();
  return cuda::open_cuda(folder);
}

}  // namespace

cuda::CudnnApi open_cudnn() {
  cuda::forbid_tf32();
  return cuda::cudnn_api(cuda::find_cudnn(base::library_folders(base::process_environment()), 0));
}

Gpu::Gpu() : api_(open_module()), capability_(cuda::check_device(api_, 0, base::process_environment())) {
  check(api_.cudaSetDevice(0), "cudaSetDevice");
  check(api_.cudaStreamCreateWithPriority(&stream_, cuda::kCudaStreamNonBlocking, 0),
        "cudaStreamCreateWithPriority");
  check(api_.cudaEventCreateWithFlags(&begin_, cuda::kCudaEventDefault), "cudaEventCreateWithFlags");
  check(api_.cudaEventCreateWithFlags(&end_, cuda::kCudaEventDefault), "cudaEventCreateWithFlags");
}

// The process of a part ends with it: statuses of tidying up tell nothing.
Gpu::~Gpu() {
  for (auto* captured : captured_) static_cast<void>(api_.cudaGraphExecDestroy(captured));
  for (void* memory : memory_) static_cast<void>(api_.cudaFree(memory));
  for (void* memory : pinned_) static_cast<void>(api_.cudaFreeHost(memory));
  static_cast<void>(api_.cudaEventDestroy(begin_));
  static_cast<void>(api_.cudaEventDestroy(end_));
  static_cast<void>(api_.cudaStreamDestroy(stream_));
}

void Gpu::check(cuda::CudaStatus status, const char* call) const {
  if (status != cuda::kCudaSuccess)
    base::fail(base::ErrorKind::device, "{}", cuda::describe_cuda_error(api_, status, call, "on GPU 0"));
}

engine::Precision Gpu::precision() const {
  return cuda::has_bf16_units(capability_) ? engine::Precision::bf16 : engine::Precision::f32;
}

std::string Gpu::name() const {
  char name[256] = "";
  check(api_.device_name(name, sizeof name, 0), "cudaGetDeviceProperties");
  return name;
}

std::size_t Gpu::workspace_limit() const {
  std::size_t free = 0, total = 0;
  check(api_.cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return cuda::workspace_limit(static_cast<std::int64_t>(total));
}

void* Gpu::allocate(std::size_t bytes) {
  void* memory = nullptr;
  check(api_.cudaMalloc(&memory, std::max<std::size_t>(bytes, 256)), "cudaMalloc");
  memory_.push_back(memory);
  return memory;
}

void* Gpu::allocate_pinned(std::size_t bytes) {
  void* memory = nullptr;
  check(api_.cudaHostAlloc(&memory, bytes, cuda::kCudaHostAllocDefault), "cudaHostAlloc");
  pinned_.push_back(memory);
  return memory;
}

void Gpu::free_all() {
  wait();
  for (void* memory : memory_) check(api_.cudaFree(memory), "cudaFree");
  memory_.clear();
}

void Gpu::upload(void* dst, const void* src, std::size_t bytes) {
  check(api_.cudaMemcpyAsync(dst, src, bytes, cuda::kCudaMemcpyHostToDevice, stream_), "cudaMemcpyAsync");
  wait();
}

void Gpu::download(void* dst, const void* src, std::size_t bytes) {
  check(api_.cudaMemcpyAsync(dst, src, bytes, cuda::kCudaMemcpyDeviceToHost, stream_), "cudaMemcpyAsync");
  wait();
}

void Gpu::fill(void* dst, int byte, std::size_t bytes) {
  check(api_.cudaMemsetAsync(dst, byte, bytes, stream_), "cudaMemsetAsync");
}

void Gpu::wait() { check(api_.cudaStreamSynchronize(stream_), "cudaStreamSynchronize"); }

double Gpu::milliseconds(const std::function<void()>& work) {
  check(api_.cudaEventRecord(begin_, stream_), "cudaEventRecord");
  work();
  check(api_.cudaEventRecord(end_, stream_), "cudaEventRecord");
  check(api_.cudaEventSynchronize(end_), "cudaEventSynchronize");
  float milliseconds = 0;
  check(api_.cudaEventElapsedTime(&milliseconds, begin_, end_), "cudaEventElapsedTime");
  return milliseconds;
}

cuda::CudaGraphExecHandle Gpu::capture(const std::function<void()>& work) {
  check(api_.cudaStreamBeginCapture(stream_, cuda::kCudaStreamCaptureModeThreadLocal),
        "cudaStreamBeginCapture");
  cuda::CudaGraphHandle graph = nullptr;
  try {
    work();
  } catch (...) {
    static_cast<void>(api_.cudaStreamEndCapture(stream_, &graph));
    throw;
  }
  check(api_.cudaStreamEndCapture(stream_, &graph), "cudaStreamEndCapture");
  cuda::CudaGraphExecHandle captured = nullptr;
  check(api_.cudaGraphInstantiate(&captured, graph, 0), "cudaGraphInstantiate");
  captured_.push_back(captured);
  check(api_.cudaGraphDestroy(graph), "cudaGraphDestroy");
  return captured;
}

void Gpu::replay(cuda::CudaGraphExecHandle captured) {
  check(api_.cudaGraphLaunch(captured, stream_), "cudaGraphLaunch");
}

std::vector<std::byte> random_numbers(std::int64_t count, engine::Precision precision, std::uint32_t seed) {
  std::vector<std::byte> bytes(static_cast<std::size_t>(count) *
                               (precision == engine::Precision::f32 ? 4 : 2));
  for (std::int64_t i = 0; i < count; ++i) {
    seed = seed * 1664525u + 1013904223u;
    const float value = static_cast<float>(static_cast<int>(seed >> 9) - (1 << 22)) / (1 << 22);
    if (precision == engine::Precision::f32) {
      std::memcpy(bytes.data() + 4 * i, &value, 4);
    } else {
      cuda::Bf16 rounded;
      cuda::store(value, rounded);
      std::memcpy(bytes.data() + 2 * i, &rounded, 2);
    }
  }
  return bytes;
}

std::string name_of(const cuda::cudnn::EngineFacts& engine) {
  return engine.knobs.empty() ? fmt::format("engine {}", engine.index)
                              : fmt::format("engine {} ({})", engine.index, engine.knobs);
}

std::vector<cuda::ConvProblem> resnet_problems(int batch, engine::Precision precision) {
  std::vector<cuda::ConvProblem> distinct;
  const graph::Graph graph = graph::make_model("resnet18-cifar", {3, 32, 32}, 10, 0);
  for (const cuda::ConvProblem& problem : cuda::conv_problems(graph, batch, precision))
    if (std::find(distinct.begin(), distinct.end(), problem) == distinct.end()) distinct.push_back(problem);
  return distinct;
}

Operands::Operands(Gpu& gpu, const cuda::ConvProblem& problem, std::size_t workspace) {
  const std::size_t element = problem.precision == engine::Precision::f32 ? 4 : 2;
  src_bytes = static_cast<std::size_t>(problem.src_elements()) * element;
  dst_bytes = static_cast<std::size_t>(problem.dst_elements()) * element;
  weight_bytes = static_cast<std::size_t>(problem.weight_elements()) * element;
  pointers = {.src = gpu.allocate(src_bytes),
              .dst = gpu.allocate(dst_bytes),
              .weight = gpu.allocate(weight_bytes),
              .workspace = gpu.allocate(workspace)};
  constexpr std::int64_t kNumbers = 1 << 20;  // the same ones again and again in a larger operand
  const std::vector<std::byte> numbers = random_numbers(kNumbers, problem.precision, 1);
  for (const auto& [to, bytes] : {std::pair(pointers.src, src_bytes), std::pair(pointers.dst, dst_bytes),
                                  std::pair(pointers.weight, weight_bytes)})
    for (std::size_t done = 0; done < bytes; done += numbers.size())
      gpu.upload(static_cast<std::byte*>(to) + done, numbers.data(), std::min(numbers.size(), bytes - done));
}

}  // namespace paceline::probe
