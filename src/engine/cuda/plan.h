#pragma once

/// What an engine allocates, on the device and on the host.

#include "engine/cuda/program.h"
#include "graph/plan.h"

namespace paceline::engine::cuda {

/// Line by line; exact but for what is not the engine's: the context, libraries and loaded kernels of a GPU
/// have a line that is a guess. Each block on a GPU counts as whole units of its allocator. On the host
/// runtime the device's lines are host memory too.
[[nodiscard]] graph::MemoryPlan plan_of(const Program& program, const DeviceFacts& device);

}  // namespace paceline::engine::cuda
