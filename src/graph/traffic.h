#pragma once

/// Bytes that a training step moves, counted op by op: what the arithmetic intensity is made of.

#include <cstdint>

#include "graph/graph.h"

namespace paceline::graph {

/// Each op reads its inputs and writes its output once, forward; backward it reads what it kept and the
/// gradient of its output, and writes that of each input that needs one. A fused op moves less, an op whose
/// arrays do not fit the caches more.
struct Traffic {
  std::int64_t bytes_a_sample = 0;  ///< activations and their gradients
  std::int64_t bytes_a_step = 0;    ///< weights twice, their gradients, the update with its state
};

/// `activation_bytes`: of an element, 4 or 2. `state_arrays`: of the optimizer, each as large as the weights.
[[nodiscard]] Traffic training_traffic(const Graph& graph, std::int64_t activation_bytes, int state_arrays);

}  // namespace paceline::graph
