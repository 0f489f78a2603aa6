#pragma once

/// Floating-point operations of a model: convolutions and dense layers; a multiply-add is 2.

#include <cstdint>

#include "graph/graph.h"

namespace paceline::graph {

/// Of one trained sample: forward, and backward by data and by weights where a parameter learns.
[[nodiscard]] std::int64_t training_flops(const Graph& graph);
/// Of one evaluated sample.
[[nodiscard]] std::int64_t forward_flops(const Graph& graph);

}  // namespace paceline::graph
