#pragma once

/// Implements engine::prepare() (engine/make.h) for the CUDA engine: chooses cuDNN's algorithms for a run.

#include "engine/cuda/runtime/runtime.h"
#include "engine/engine.h"
#include "graph/graph.h"

namespace paceline::engine::cuda {

/// Chooses the algorithms of the convolutions and dense layers of `graph`, by measuring on `runtime` if
/// `request` says so.
///
/// Requires  nothing else uses `runtime` meanwhile
/// Cost      makes a plan for each problem (a layer in one direction); measuring takes about 50 ms for each
///           problem the first time
/// Errors    those of engine::prepare(); Error(device)
[[nodiscard]] PreparedKernels prepare(const graph::Graph& graph, const CompileOptions& options,
                                      const KernelRequest& request, Runtime& runtime);

}  // namespace paceline::engine::cuda
