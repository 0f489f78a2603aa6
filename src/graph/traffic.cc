#include "graph/traffic.h"

#include <vector>

#include "graph/layout.h"
#include "graph/ops/rules.h"

namespace paceline::graph {

Traffic training_traffic(const Graph& graph, std::int64_t activation_bytes, int state_arrays) {
  const std::vector<bool> needs = needs_gradient(graph);
  std::int64_t elements = 0;
  for (const Node& node : graph.nodes) {
    if (node.inputs.empty()) continue;  // the image: the op that reads it counts it
    const OpRule& rule = rule_of(node.op);
    const std::int64_t output = node.shape.elements();
    std::int64_t inputs = 0, gradients = 0;
    for (const int input : node.inputs) {
      const std::int64_t size = graph.nodes[static_cast<std::size_t>(input)].shape.elements();
      inputs += size;
      if (needs[static_cast<std::size_t>(input)]) gradients += size;
    }
    elements += inputs + output;  // forward
    elements +=
        (rule.saved.src ? inputs : 0) + (rule.saved.dst ? output : 0) + output + gradients;  // backward
  }
  constexpr std::int64_t kBytes = sizeof(float);
  // The weight is read in forward and backward; its gradient is written, then read by the update, which reads
  // and writes weight and state.
  const std::int64_t passes = 2 + 2 + 2 + 2 * state_arrays;
  return {.bytes_a_sample = activation_bytes * elements,
          .bytes_a_step = kBytes * passes * flat_layout(graph).elements};
}

}  // namespace paceline::graph
