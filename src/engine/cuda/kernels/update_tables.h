#pragma once

/// Makes the tables that the update kernels (update.h) read, from a graph and an update rule. Host
/// code, which nvcc does not compile.

#include <span>
#include <vector>

#include "engine/cuda/kernels/update.h"
#include "engine/program.h"
#include "engine/update_rule.h"
#include "graph/layout.h"

namespace paceline::engine::cuda {

/// The weight of a convolution or dense layer, and the packed (reordered) copy that the layer reads and the
/// update rewrites.
struct LayerWeight {
  std::int64_t offset = 0;  ///< in the flat arrays
  BufferId packed = {};
  WeightShape shape;
};

/// Tables that are fixed for a graph. The engine copies them to the device once.
struct UpdateTables {
  std::vector<UpdateTile> tiles;  ///< of all trainable parameters, slot after slot
  std::int64_t elements = 0;      ///< of all tiles
  std::vector<LarsChunk> lars_chunks;
  std::vector<std::int32_t> first_lars_chunk;  ///< [slots + 1]
  std::vector<RunningSlot> running;            ///< of all running statistics
};
/// A tile names its layer by the index in `layers`, if fits_update_tiles().
[[nodiscard]] UpdateTables update_tables(const graph::Graph& graph, const graph::Layout& layout,
                                         std::span<const LayerWeight> layers);

/// The numbers of update number `update` (from 1), by slot. The engine copies them to the device before each
/// update.
[[nodiscard]] std::vector<UpdateNumbers> update_numbers(const graph::Graph& graph,
                                                        const graph::Layout& layout, const UpdateRule& rule,
                                                        double lr, std::int64_t update);

}  // namespace paceline::engine::cuda
