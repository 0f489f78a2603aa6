#pragma once

/// Decides which ops of a graph are fused into one compiled op.
///
/// A batch norm is fused with the residual sum and the ReLU after it; a convolution, dense layer or sum is
/// fused with the ReLU after it. An op is fused only if nothing else reads the value between.

#include <vector>

#include "graph/graph.h"

namespace paceline::engine {

struct FusedGroup {
  int node = 0;  ///< the first op: it gives the group its kind, name and parameters
  int last = 0;  ///< the op whose output the group produces; it determines the group's place in the order
  std::vector<int> inputs;  ///< nodes whose values the group reads: src, then the residual
  bool sum = false;         ///< a batch norm with a residual sum
  bool relu = false;
};

/// The groups in order of execution. Every node is in exactly one group.
[[nodiscard]] std::vector<FusedGroup> fuse(const graph::Graph& graph);

}  // namespace paceline::engine
