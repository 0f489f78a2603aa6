#pragma once

/// The reference engine behind the interface of engine.h.

#include <memory>

#include "engine/engine.h"

namespace paceline::engine::reference {

/// Computes in float, one thread (`threads` is an upper limit, not a promise).
///
/// Errors   Error(usage) for bf16, which plain loops do not imitate, or a ghost size that does not divide the
///          batch; Error(device) when memory is refused
[[nodiscard]] std::unique_ptr<Engine> compile(const graph::Graph& graph, const CompileOptions& options);

/// The same with values and gradients in double between float arrays: the yardstick of tests.
[[nodiscard]] std::unique_ptr<Engine> compile_double(const graph::Graph& graph,
                                                     const CompileOptions& options);

[[nodiscard]] graph::MemoryPlan plan(const graph::Graph& graph, const CompileOptions& options);

}  // namespace paceline::engine::reference
