#include "graph/graph.h"

#include "graph/ops/rules.h"

namespace paceline::graph {

std::int64_t Parameter::elements() const {
  std::int64_t count = 1;
  for (const std::int64_t length : shape) count *= length;
  return count;
}

std::int64_t Graph::trainable_elements() const {
  std::int64_t count = 0;
  for (const Parameter& parameter : parameters)
    if (is_trainable(parameter.role) && !parameter.is_frozen()) count += parameter.elements();
  return count;
}

std::int64_t Graph::forward_flops() const {
  std::int64_t products = 0;
  for (int node = 0; node < static_cast<int>(nodes.size()); ++node) products += multiply_adds(*this, node);
  return 2 * products;
}

std::int64_t Graph::training_flops() const {
  const std::vector<bool> needs = needs_gradient(*this);
  std::int64_t products = 0;
  for (int node = 0; node < static_cast<int>(nodes.size()); ++node) {
    const auto& inputs = nodes[static_cast<std::size_t>(node)].inputs;
    const bool has_d_src = !inputs.empty() && needs[static_cast<std::size_t>(inputs.front())];
    products += multiply_adds(*this, node) * (1 + (has_d_src ? 1 : 0) + (learns(*this, node) ? 1 : 0));
  }
  return 2 * products;
}

}  // namespace paceline::graph
