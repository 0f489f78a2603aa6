#include "graph/layout.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <span>

#include "base/sha256.h"
#include "graph/ops.h"

namespace paceline::graph {

std::string canonical_text(const Graph& graph) {
  std::string lines;
  for (const Node& node : graph.nodes) {
    const OpRule& rule = rule_of(node.op);
    lines += fmt::format("{} of {}: {}; {}", rule.kind, fmt::join(node.inputs, ","),
                         rule.attributes != nullptr ? rule.attributes(node.op) : "", text(node.shape));
    for (const int parameter : node.parameters)
      lines += "; " + graph.parameters[static_cast<std::size_t>(parameter)].name;
    lines += '\n';
  }
  return lines;
}

std::string fingerprint(const Graph& graph) {
  const std::string lines = canonical_text(graph);
  base::Sha256 sum;
  sum.update(std::as_bytes(std::span(lines)));
  return sum.digits();
}

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
