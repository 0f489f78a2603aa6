#include "graph/residual.h"

#include <algorithm>
#include <vector>

namespace paceline::graph {

int zero_last_gammas(Graph& graph) {
  std::vector<int> depth(graph.nodes.size(), 0);  // length of the longest path from the image
  int changed = 0;
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Node& node = graph.nodes[i];
    for (const int input : node.inputs)
      depth[i] = std::max(depth[i], depth[static_cast<std::size_t>(input)] + 1);
    if (node.as<Add>() == nullptr) continue;
    const auto deeper = [&](int a, int b) {
      return depth[static_cast<std::size_t>(a)] < depth[static_cast<std::size_t>(b)];
    };
    const int branch = *std::max_element(node.inputs.begin(), node.inputs.end(), deeper);
    auto* norm = std::get_if<BatchNorm>(&graph.nodes[static_cast<std::size_t>(branch)].op);
    if (norm == nullptr) continue;
    norm->init = Init::zero;
    ++changed;
  }
  return changed;
}

}  // namespace paceline::graph
