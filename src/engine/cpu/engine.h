#pragma once

/// The fast engine for x86-64 processors, in fp32 and bf16.
///
/// Each convolution and dense layer is computed by one of several algorithms (conv/), oneDNN's among them;
/// all other ops have kernels of this project (ops/, kernels/). Activations are channels last
/// (docs/decisions/cpu-layout.md). A graph is compiled to a list of ops, some of them fused (batch norm +
/// residual sum + ReLU), whose buffers share one arena according to their lifetimes.
///
/// Threads  an engine belongs to the thread that calls it. It starts `CompileOptions::threads` - 1 more,
///          which inherit the cores of the thread that compiled it. One process may have several engines. The
///          same calls give the same bits with any number of threads (docs/decisions/engine-threads.md)

#include <memory>

#include "engine/cpu/tuning.h"
#include "engine/engine.h"

namespace paceline::engine::cpu {

/// Compiles `graph` and allocates all memory.
///
/// Errors   Error(usage) for impossible options; Error(device) when memory is refused
[[nodiscard]] std::unique_ptr<Engine> compile(const graph::Graph& graph, const CompileOptions& options,
                                              const Tuning& tuning = {});

/// Exactly the memory that compile() would allocate. Allocates nothing large itself.
[[nodiscard]] graph::MemoryPlan plan(const graph::Graph& graph, const CompileOptions& options,
                                     const Tuning& tuning = {});

/// engine::prepare() (engine/make.h) for this engine, in engine.cc.
[[nodiscard]] PreparedKernels prepare(const graph::Graph& graph, const CompileOptions& options,
                                      const KernelRequest& request);

/// engine::auto_precision() (engine/make.h) for this engine: prefers() (processor_kind.h) of the processor
/// here if it has units that multiply bf16, else fp32.
[[nodiscard]] AutoPrecision auto_precision();

}  // namespace paceline::engine::cpu
