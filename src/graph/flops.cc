#include "graph/flops.h"

#include <vector>

#include "graph/ops/rules.h"

namespace paceline::graph {

std::int64_t forward_flops(const Graph& graph) {
  std::int64_t products = 0;
  for (int node = 0; node < static_cast<int>(graph.nodes.size()); ++node)
    products += multiply_adds(graph, node);
  return 2 * products;
}

std::int64_t training_flops(const Graph& graph) {
  const std::vector<bool> needs = needs_gradient(graph);
  std::int64_t products = 0;
  for (int node = 0; node < static_cast<int>(graph.nodes.size()); ++node) {
    const auto& inputs = graph.nodes[static_cast<std::size_t>(node)].inputs;
    const bool has_d_src = !inputs.empty() && needs[static_cast<std::size_t>(inputs.front())];
    products += multiply_adds(graph, node) * (1 + (has_d_src ? 1 : 0) + (learns(graph, node) ? 1 : 0));
  }
  return 2 * products;
}

}  // namespace paceline::graph
