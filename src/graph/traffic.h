#pragma once

/// Counts the bytes that a training step moves, op by op, for the arithmetic intensity.

#include <cstdint>

#include "graph/graph.h"

namespace paceline::graph {

/// Forward, each op reads its inputs and writes its output once. Backward, it reads what was kept and the
/// gradient of its output, and writes the gradient of each input that needs one. A fused op moves less; an op
/// whose arrays do not fit the caches moves more.
struct Traffic {
  std::int64_t bytes_a_sample = 0;  ///< activations and their gradients
  std::int64_t bytes_a_step = 0;    ///< weights twice, their gradients, the update with its state
};

/// `activation_bytes`: 4 or 2 per element. `state_arrays`: the optimizer's, each as large as the weights.
[[nodiscard]] Traffic training_traffic(const Graph& graph, std::int64_t activation_bytes, int state_arrays);

}  // namespace paceline::graph
