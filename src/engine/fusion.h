#pragma once

/// Which ops of a graph become one compiled op.
///
/// A batch norm takes the residual sum and the ReLU behind it, a convolution or dense layer and a sum the
/// ReLU behind them; wherever nobody else reads what lies between.

#include <vector>

#include "graph/graph.h"

namespace paceline::engine {

struct FusedGroup {
  int node = 0;             ///< the op that gives the group its kind, name and parameters
  int last = 0;             ///< the op whose output the group produces; the group runs at its place
  std::vector<int> inputs;  ///< nodes whose values it reads: src, then the other side of a sum
  bool sum = false;         ///< a batch norm with a residual
  bool relu = false;
};

/// In order of execution; every node is in one group.
[[nodiscard]] std::vector<FusedGroup> fuse(const graph::Graph& graph);

}  // namespace paceline::engine
