#pragma once

/// The reference engine: plain loops that implement the interface of engine/engine.h, with which the fast
/// engines are compared.

#include <memory>

#include "engine/engine.h"

namespace paceline::engine::reference {

/// Compiles `graph` to compute in float, on one thread whatever `threads` says.
///
/// Errors   Error(usage) for bf16, which this engine does not have, or a ghost size that does not divide the
///          batch; Error(device) when memory is refused
[[nodiscard]] std::unique_ptr<Engine> compile(const graph::Graph& graph, const CompileOptions& options);

/// The same with values and gradients in double; the flat arrays stay float. Tests compare with it.
[[nodiscard]] std::unique_ptr<Engine> compile_double(const graph::Graph& graph,
                                                     const CompileOptions& options);

/// The memory that compile() would allocate.
[[nodiscard]] graph::MemoryPlan plan(const graph::Graph& graph, const CompileOptions& options);

}  // namespace paceline::engine::reference
