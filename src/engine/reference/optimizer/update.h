#pragma once

/// The update rules, written as PyTorch's documentation writes them; what the fast engines are compared with.

#include <cstdint>
#include <span>
#include <vector>

#include "engine/engine.h"

namespace paceline::engine::reference {

/// Turns `gradients` into new `weights`, slot by slot; see Engine::update.
///
/// Optimizer state, by slot: sgd and lars {momentum}; adam and adamw {first moment, second moment}; rmsprop
/// {mean square, momentum if asked}; adadelta {mean square, mean square of changes}. All start as zeros.
/// Arithmetic is double, results are rounded to T once. LARS follows You et al. (2017), algorithm 1: the
/// learning rate is inside the momentum, v = m v + lr local_lr (g + wd w), w -= v; local_lr is 1 where a norm
/// is zero, and for everything but weights (which also have no decay). Batch norm's running values take
/// running = (1 - momentum) running + momentum slot.
template <typename T>
void apply_update(const graph::Graph& graph, const graph::Layout& layout, const UpdateRule& rule, double lr,
                  std::int64_t update, std::span<T> weights, std::span<const T> gradients,
                  const std::vector<std::span<T>>& state);

}  // namespace paceline::engine::reference
