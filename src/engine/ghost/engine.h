#pragma once

/// An engine that sleeps instead of computing (CompileOptions::emulated_compute): a worker of it takes the
/// time of phases that were measured or given, and its gradients have the size of the model's. So many
/// workers fit on few cores, each as if on a machine of its own. Nothing is learned: weights stay as they
/// are, gradients are zero, and every loss is that of a guess.

#include <memory>
#include <span>
#include <vector>

#include "engine/engine.h"
#include "engine/ghost/phases.h"

namespace paceline::engine::ghost {

/// When each of `ends` (in elements of the flat gradient, ascending) is final, in seconds of the backward
/// pass: as the phases say, or by the share of the layers' multiply-adds. The last is the whole pass.
[[nodiscard]] std::vector<double> ready_times(const Phases& phases, const graph::Graph& graph,
                                              const graph::Layout& layout,
                                              std::span<const std::int64_t> ends);

/// Errors   Error(usage): phases of another batch or model; --bn sync, which exchanges values inside a pass
[[nodiscard]] std::unique_ptr<Engine> compile(const graph::Graph& graph, const CompileOptions& options);

/// The memory that compile() would allocate: weights and gradients alone.
[[nodiscard]] graph::MemoryPlan plan(const graph::Graph& graph, const CompileOptions& options);

}  // namespace paceline::engine::ghost
