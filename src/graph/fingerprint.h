#pragma once

/// Identifies a model by its graph, so that stored weights can be matched to the graph they belong to.

#include <string>

#include "graph/graph.h"

namespace paceline::graph {

/// A line per node: kind, inputs, attributes, shape, and names of its parameters. The graph's name, and names
/// of nodes without parameters, are left out.
[[nodiscard]] std::string canonical_text(const Graph& graph);

/// SHA-256 of that text: 64 hexadecimal digits.
[[nodiscard]] std::string fingerprint(const Graph& graph);

}  // namespace paceline::graph
