#pragma once

/// The fast engine for x86-64 processors: fp32 and bf16.
///
/// Convolutions and dense layers are by one of several algorithms (conv/), oneDNN's among them; everything
/// else is our own (ops/, kernels/). Activations lie
/// channels last (docs/decisions/cpu-layout.md). A graph becomes a list of steps, some of several ops (batch
/// norm + residual sum + ReLU), whose buffers share one arena by lifetime.
///
/// Threads  an engine belongs to the thread that calls it, and has `CompileOptions::threads` - 1 helpers,
/// which
///          inherit the cores of the thread that compiled it. Several engines live in one process. The same
///          calls give the same bits with any number of threads (docs/decisions/engine-threads.md).

#include <cstdint>
#include <memory>
#include <string>

#include "engine/cpu/tuning.h"
#include "engine/engine.h"

namespace paceline::engine::cpu {

/// Errors   Error(usage) for options that cannot be; Error(device) when memory is refused
[[nodiscard]] std::unique_ptr<Engine> compile(const graph::Graph& graph, const CompileOptions& options,
                                              const Tuning& tuning);
[[nodiscard]] std::unique_ptr<Engine> compile(const graph::Graph& graph, const CompileOptions& options);

/// Exactly what compile() would allocate for the model; nothing large is allocated to find out.
[[nodiscard]] graph::MemoryPlan plan(const graph::Graph& graph, const CompileOptions& options,
                                     const Tuning& tuning);
[[nodiscard]] graph::MemoryPlan plan(const graph::Graph& graph, const CompileOptions& options);

/// engine::prepare() (engine/make.h) for this engine, in prepare.cc.
[[nodiscard]] PreparedKernels prepare(const graph::Graph& graph, const CompileOptions& options,
                                      const KernelRequest& request);

/// Whether this machine multiplies bf16 in hardware: what --precision auto asks.
[[nodiscard]] bool has_bf16_units();

}  // namespace paceline::engine::cpu
