#pragma once

/// Counts the floating-point operations of a model: convolutions and dense layers; a multiply-add counts as
/// 2.

#include <cstdint>

#include "graph/graph.h"

namespace paceline::graph {

/// For training one sample: forward, and the backward passes to data and to weights that are needed.
[[nodiscard]] std::int64_t training_flops(const Graph& graph);
/// For evaluating one sample.
[[nodiscard]] std::int64_t forward_flops(const Graph& graph);

}  // namespace paceline::graph
