#pragma once

/// What makes two graphs the same model, as one text: whoever keeps weights can tell that they are of this
/// graph.

#include <string>

#include "graph/graph.h"

namespace paceline::graph {

/// A line for each node: kind, inputs, attributes, shape, and names of its parameters. Names of nodes without
/// parameters, and the graph's own, do not matter.
[[nodiscard]] std::string canonical_text(const Graph& graph);

/// SHA-256 of that text: 64 hexadecimal digits.
[[nodiscard]] std::string fingerprint(const Graph& graph);

}  // namespace paceline::graph
