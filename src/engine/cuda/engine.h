#pragma once

/// Compiles a graph for the CUDA engine, which computes on one GPU, or on the processor in its place. All
/// calls to the device go through the interface of runtime.h.
///
/// A graph becomes a list of ops that enqueue kernels and convolutions on one stream, `compute`. Another
/// stream, `copies`, carries images to the device and loss sums back. The work of a training step is cut into
/// sections, which are captured as CUDA graphs in the warm-up and replayed afterwards (sections.h);
/// evaluations of full batches are captured too. The host waits once a step, in forward(), for the loss sums.
/// Other calls return before the device is done.
///
/// Threads  one calling thread; the engine starts none

#include <memory>
#include <string>

#include "engine/cuda/runtime/runtime.h"
#include "engine/engine.h"

namespace paceline::engine::cuda {

struct EngineSettings {
  std::string name = "cuda";  ///< Engine::name(), and that of its Memory
  /// For tests: fills all memory that a pass writes with NaN before the pass.
  bool poison = false;
};

/// Compiles `graph` for the device of `runtime`.
///
/// Errors   Error(usage) for impossible options; Error(device) when memory is refused or a call fails
[[nodiscard]] std::unique_ptr<Engine> compile(const graph::Graph& graph, const CompileOptions& options,
                                              std::unique_ptr<Runtime> runtime,
                                              const EngineSettings& settings = {});

/// The memory that compile() would allocate. Allocates none of it.
[[nodiscard]] graph::MemoryPlan plan(const graph::Graph& graph, const CompileOptions& options,
                                     Runtime& runtime);

}  // namespace paceline::engine::cuda
