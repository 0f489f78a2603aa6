#pragma once

/// What the update kernels read, made on the host from a graph and a rule. Not for nvcc.

#include <span>
#include <vector>

#include "engine/cuda/kernels/lars.h"
#include "engine/cuda/kernels/update.h"
#include "engine/update_rule.h"
#include "graph/layout.h"

namespace paceline::engine::cuda {

/// A layer's weight that an update shall pack.
struct PackedPlace {
  std::int64_t offset = 0;  ///< in the flat arrays
  WeightShape shape;
};

/// Fixed for a graph; the engine copies it to the device once.
struct UpdateTables {
  std::vector<UpdateTile> tiles;  ///< of all parameters that learn, slot after slot
  std::int64_t elements = 0;      ///< of all tiles
  std::vector<LarsChunk> lars_chunks;
  std::vector<std::int32_t> first_lars_chunk;  ///< [slots + 1]
  std::vector<RunningSlot> running;            ///< of all running statistics
};
/// `packed`: by number of the layer; tiles name those that fit.
[[nodiscard]] UpdateTables update_tables(const graph::Graph& graph, const graph::Layout& layout,
                                         std::span<const PackedPlace> packed);

/// By slot, for one update (it counts from 1); the engine copies them to the device before each.
[[nodiscard]] std::vector<UpdateNumbers> update_numbers(const graph::Graph& graph,
                                                        const graph::Layout& layout, const UpdateRule& rule,
                                                        double lr, std::int64_t update);

}  // namespace paceline::engine::cuda
