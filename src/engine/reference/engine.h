#pragma once

/// The reference engine: plain loops that implement the interface of engine/engine.h, with which the fast
/// engines are compared.

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/engine.h"

namespace paceline::engine::reference {

// The update rules of the reference engine, written as in PyTorch's documentation. The fast engines are
// compared with them.

/// Updates `weights` with `gradients`, slot by slot; see Engine::update.
///
/// Arrays in `state`: sgd and lars {momentum}; adam, adamw and lamb {first moment, second moment}; rmsprop
/// {mean square, momentum if used}; adadelta {mean square, mean square of changes}. All start as zeros.
/// Arithmetic is in double; results are rounded to T once. LARS follows You et al. (2017), algorithm 1, with
/// the learning rate inside the momentum: v = m v + lr local_lr (g + wd w), w -= v. local_lr is 1 if a norm
/// is zero, and for all parameters but weights, which also have no decay. Running statistics of batch norms:
/// running = (1 - momentum) running + momentum slot.
template <typename T>
void apply_update(const graph::Graph& graph, const graph::Layout& layout, const UpdateRule& rule, double lr,
                  std::int64_t update, std::span<T> weights, std::span<const T> gradients,
                  const std::vector<std::span<T>>& state);

/// Compiles `graph` to compute in float, on one thread whatever `threads` says.
///
/// Errors   Error(usage) for bf16, which this engine does not have, or a ghost size that does not divide the
///          batch; Error(device) when memory is refused
[[nodiscard]] std::unique_ptr<Engine> compile(const graph::Graph& graph, const CompileOptions& options);

/// The memory that compile() would allocate.
[[nodiscard]] graph::MemoryPlan plan(const graph::Graph& graph, const CompileOptions& options);

}  // namespace paceline::engine::reference
