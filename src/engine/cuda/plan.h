#pragma once

/// plan_of() lists the memory of a CUDA engine, on the device and on the host, before it is allocated.

#include "engine/cuda/program.h"
#include "graph/plan.h"

namespace paceline::engine::cuda {

/// The plan, line by line. It is exact except for one estimated line: a GPU's context, libraries and loaded
/// kernels. Each block on a GPU is rounded up to the units of its allocator. On the host runtime the device's
/// lines are host memory too.
[[nodiscard]] graph::MemoryPlan plan_of(const Program& program, const DeviceFacts& device);

}  // namespace paceline::engine::cuda
