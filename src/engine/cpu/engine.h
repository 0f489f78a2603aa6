#pragma once

/// The fast engine for x86-64 processors: fp32 and bf16.
///
/// Convolutions and dense layers are oneDNN's; everything else is our own (kernels/). Activations lie
/// channels last (docs/decisions/cpu-layout.md). A graph becomes a list of steps, some of several ops (batch
/// norm + residual sum + ReLU), whose buffers share one arena by lifetime.
///
/// Threads  an engine belongs to the thread that calls it, and has `CompileOptions::threads` - 1 helpers,
/// which
///          inherit the cores of the thread that compiled it. Several engines live in one process. The same
///          calls give the same bits with any number of threads (docs/decisions/engine-threads.md).

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "engine/cpu/conv/algorithms.h"
#include "engine/cpu/kernels/isa.h"
#include "engine/engine.h"

namespace paceline::engine::cpu {

class Choices;

/// Choices that compile() makes by itself, to be overridden by tests and benchmarks. Results differ in
/// rounding only.
struct Tuning {
  std::optional<Isa> isa;  ///< of our own kernels; the machine's best
  /// bf16 only: whether products read and write bf16 themselves. Off: blocks of samples are converted to
  /// float and multiplied in float, which is faster on machines without bf16 units (and oneDNN's only way
  /// below AVX-512). By default off there, but on for what suits Winograd.
  std::optional<bool> bf16_products;
  /// bf16 without bf16 products: bytes of float copies (source and destination) that a block may have.
  std::int64_t block_bytes = std::int64_t{8} << 20;
  /// Taken for every convolution and dense layer that it can compute; by default each takes what suits its
  /// shape.
  std::optional<Method> method;
  /// Measured choices of methods, for what this leaves open; without them, and for what they do not know, by
  /// the shape.
  const Choices* choices = nullptr;
  /// Samples of a chunk of convolutions and dense layers; by default what the shape wants. Changes sums'
  /// rounding.
  std::optional<int> chunk_samples;
  /// Batch norm's sums over rows are taken by the products that write the rows, where they can; off: in
  /// passes of their own.
  bool fuses_batch_norm_stats = true;
  bool poison = false;  ///< fill every shared buffer with NaN before each pass: what is read was then written
};

/// Errors   Error(usage) for options that cannot be; Error(device) when memory is refused
[[nodiscard]] std::unique_ptr<Engine> compile(const graph::Graph& graph, const CompileOptions& options,
                                              const Tuning& tuning);
[[nodiscard]] std::unique_ptr<Engine> compile(const graph::Graph& graph, const CompileOptions& options);

/// Exactly what compile() would allocate for the model; nothing large is allocated to find out.
[[nodiscard]] graph::MemoryPlan plan(const graph::Graph& graph, const CompileOptions& options,
                                     const Tuning& tuning);
[[nodiscard]] graph::MemoryPlan plan(const graph::Graph& graph, const CompileOptions& options);

/// Measures which kernels suit this graph on this machine, where that is not known yet and the options want
/// it measured. Returns a sentence about it; empty when there was nothing to do.
[[nodiscard]] std::string prepare(const graph::Graph& graph, const CompileOptions& options);

/// Whether this machine multiplies bf16 in hardware: what --precision auto asks.
[[nodiscard]] bool has_bf16_units();

}  // namespace paceline::engine::cpu
