#pragma once

/// engine::prepare() (engine/make.h) for the CUDA engine.

#include "engine/cuda/runtime.h"
#include "engine/engine.h"
#include "graph/graph.h"

namespace paceline::engine::cuda {

/// Chooses the algorithms of the convolutions and dense layers of `graph` on `runtime`, which nothing else
/// uses meanwhile.
///
/// Cost     that of the plans; measured: some 50 ms for each problem of a GPU the first time
/// Errors   as engine::prepare(); Error(device)
[[nodiscard]] PreparedKernels prepare(const graph::Graph& graph, const CompileOptions& options,
                                      const KernelRequest& request, Runtime& runtime);

}  // namespace paceline::engine::cuda
