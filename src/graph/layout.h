#pragma once

/// Layout: the position of each parameter in the flat arrays of weights, gradients and optimizer state.
///
/// The order is that of the backward pass: the last op's parameters come first. So gradients become ready
/// from the front, and one length says how much is ready. Running statistics lie beside the batch norm that
/// owns them: their slot in the gradient array holds this step's batch statistics, so the all-reduce of the
/// gradients averages them over workers, and `update` folds them into the running values.

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "graph/graph.h"

namespace paceline::graph {

/// A line per node: kind, inputs, attributes, shape, and names of its parameters. The graph's name, and names
/// of nodes without parameters, are left out.
[[nodiscard]] std::string canonical_text(const Graph& graph);

/// SHA-256 of that text: 64 hexadecimal digits.
[[nodiscard]] std::string fingerprint(const Graph& graph);

/// The graph that the lines of canonical_text() describe, under the name `model`: what a
/// checkpoint keeps. It computes the same from the same parameters; how it would train (initial values,
/// rates, label smoothing) is not in the text.
///
/// Errors   Error(data) "<source>: ..." for a text that this version would not write
[[nodiscard]] Graph graph_from_text(const std::string& lines, const std::string& model,
                                    const std::string& source);

/// The graph for images of shape `input`, computing what graph_from_text() computes; nothing if its
/// parameters would have other shapes, as those of a dense layer over all pixels have.
///
/// Errors   Error(usage): `input` is too small for a layer
[[nodiscard]] std::optional<Graph> for_input(const Graph& graph, const Shape& input);

struct Slot {
  int parameter = 0;        ///< index into Graph::parameters
  std::int64_t offset = 0;  ///< in elements; a multiple of 16 (64 bytes of float)
  std::int64_t elements = 0;
};

struct Layout {
  std::vector<Slot> slots;             ///< in backward order
  std::vector<int> slot_of_parameter;  ///< the inverse
  std::int64_t elements = 0;           ///< of the whole flat array, padding included (padding stays zero)
};

[[nodiscard]] Layout flat_layout(const Graph& graph);

/// The slot of parameter number `index` of a node; null if it has fewer.
[[nodiscard]] const Slot* slot_of(const Graph& graph, const Layout& layout, int node, std::size_t index);

}  // namespace paceline::graph
