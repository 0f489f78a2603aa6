#pragma once

/// What the update kernels read, made on the host from a graph and a rule. Not for nvcc.

#include <vector>

#include "engine/cuda/kernels/update.h"
#include "engine/update_rule.h"
#include "graph/layout.h"

namespace paceline::engine::cuda {

/// Fixed for a graph; the engine copies it to the device once.
struct UpdateTables {
  std::vector<UpdateChunk> chunks;        ///< of all parameters that learn, slot after slot
  std::vector<std::int32_t> first_chunk;  ///< [slots + 1]
  std::vector<RunningSlot> running;       ///< of all running statistics
};
[[nodiscard]] UpdateTables update_tables(const graph::Graph& graph, const graph::Layout& layout);

/// By slot, for one update (it counts from 1); the engine copies them to the device before each.
[[nodiscard]] std::vector<UpdateNumbers> update_numbers(const graph::Graph& graph,
                                                        const graph::Layout& layout, const UpdateRule& rule,
                                                        double lr, std::int64_t update);

}  // namespace paceline::engine::cuda
