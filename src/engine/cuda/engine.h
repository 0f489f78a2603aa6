#pragma once

/// The CUDA engine: one GPU, or the processor in its place, above the interface of runtime.h.
///
/// A graph becomes a list of ops that put kernels and convolutions on one stream, `compute`; images go to the
/// device and loss sums come back on another, `copies`. What a training step puts on `compute` is cut into
/// sections that are captured in the third step and replayed from then on (sections.h), and so are full
/// batches that are evaluated. forward() waits for its loss sums: one wait of the host a step. All else
/// returns before it is done.
///
/// Threads   an engine belongs to the thread that calls it; it has no others

#include <memory>
#include <string>

#include "engine/cuda/runtime.h"
#include "engine/engine.h"

namespace paceline::engine::cuda {

struct EngineSettings {
  std::string name = "cuda";  ///< Engine::name(), and that of its Memory
  /// Fills all that a pass writes with NaN before it: for tests.
  bool poison = false;
  /// Sections of a step are captured once and replayed (sections.h); off: every step launches kernel by
  /// kernel.
  bool captures = true;
};

/// Errors   Error(usage) for options that cannot be; Error(device) when memory is refused or a call fails
[[nodiscard]] std::unique_ptr<Engine> compile(const graph::Graph& graph, const CompileOptions& options,
                                              std::unique_ptr<Runtime> runtime,
                                              const EngineSettings& settings = {});

/// What compile() would allocate; nothing is allocated to find out.
[[nodiscard]] graph::MemoryPlan plan(const graph::Graph& graph, const CompileOptions& options,
                                     Runtime& runtime);

}  // namespace paceline::engine::cuda

/// The same on the host runtime: for --device cuda-on-host.
namespace paceline::engine::cuda_on_host {

[[nodiscard]] std::unique_ptr<Engine> compile(const graph::Graph& graph, const CompileOptions& options);
[[nodiscard]] graph::MemoryPlan plan(const graph::Graph& graph, const CompileOptions& options);
[[nodiscard]] PreparedKernels prepare(const graph::Graph& graph, const CompileOptions& options,
                                      const KernelRequest& request);
[[nodiscard]] bool has_bf16_units();

}  // namespace paceline::engine::cuda_on_host
