#include "graph/fingerprint.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <span>

#include "base/sha256.h"
#include "graph/ops/rules.h"

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

}  // namespace paceline::graph
