#include "graph/layout.h"

namespace paceline::graph {
namespace {
constexpr std::int64_t kMultiple = 16;  // floats in a cache line and in a 512-bit vector
}

Layout flat_layout(const Graph& graph) {
  Layout layout;
  layout.slot_of_parameter.assign(graph.parameters.size(), -1);
  for (auto node = graph.nodes.rbegin(); node != graph.nodes.rend(); ++node) {
    for (const int parameter : node->parameters) {
      const std::int64_t elements = graph.parameters[static_cast<std::size_t>(parameter)].elements();
      layout.slot_of_parameter[static_cast<std::size_t>(parameter)] = static_cast<int>(layout.slots.size());
      layout.slots.push_back({.parameter = parameter, .offset = layout.elements, .elements = elements});
      layout.elements += (elements + kMultiple - 1) / kMultiple * kMultiple;
    }
  }
  return layout;
}

}  // namespace paceline::graph
