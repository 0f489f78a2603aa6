#include "cuda_probe/gpu.h"

#include <algorithm>
#include <filesystem>

#include "base/error.h"
#include "engine/cuda/conv_shapes.h"
#include "engine/cuda/load.h"
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
  return cuda::cudnn_api(cuda::find_cudnn(base::process_environment()));
}

Gpu::Gpu() : api_(open_module()) {
  cuda::check_device(api_, 0, base::process_environment());
  check(api_.cudaSetDevice(0), "cudaSetDevice");
  check(api_.cudaStreamCreateWithPriority(&stream_, cuda::kCudaStreamNonBlocking, 0),
        "cudaStreamCreateWithPriority");
  check(api_.cudaEventCreateWithFlags(&begin_, cuda::kCudaEventDefault), "cudaEventCreateWithFlags");
  check(api_.cudaEventCreateWithFlags(&end_, cuda::kCudaEventDefault), "cudaEventCreateWithFlags");
}

// The process of a part ends with it: statuses of tidying up tell nothing.
Gpu::~Gpu() {
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

std::string Gpu::name() const {
  char name[256] = "";
  check(api_.device_name(name, sizeof name, 0), "cudaGetDeviceProperties");
  return name;
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
}

}  // namespace paceline::probe
