#include "engine/cuda/engine.h"
#include "engine/cuda/prepare.h"
#include "engine/cuda/runtime/host_runtime.h"

// The CUDA engine on the processor, as one of the devices that engine/make.cc lists.

namespace paceline::engine::cuda_on_host {

std::unique_ptr<Engine> compile(const graph::Graph& graph, const CompileOptions& options) {
  return cuda::compile(graph, options, std::make_unique<cuda::HostRuntime>(), {.name = "cuda-on-host"});
}
graph::MemoryPlan plan(const graph::Graph& graph, const CompileOptions& options) {
  cuda::HostRuntime runtime;
  return cuda::plan(graph, options, runtime);
}
PreparedKernels prepare(const graph::Graph& graph, const CompileOptions& options,
                        const KernelRequest& request) {
  cuda::HostRuntime runtime;
  PreparedKernels prepared = cuda::prepare(graph, options, request, runtime);
  prepared.note = "no GPU: the CUDA engine on the processor; its times say nothing about any GPU" +
                  (prepared.note.empty() ? "" : "; " + prepared.note);
  return prepared;
}
AutoPrecision auto_precision() { return {Precision::f32, "its loops emulate bf16, which takes longer"}; }

}  // namespace paceline::engine::cuda_on_host
