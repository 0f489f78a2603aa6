#pragma once

/// One of every op that a graph can hold, for tests that nobody should have to extend by hand: they fail,
/// with the op's name, where a new one was forgotten.

#include <type_traits>
#include <variant>
#include <vector>

#include "graph/graph.h"
#include "graph/ops.h"

namespace paceline::graph {

template <typename... Ops>
std::vector<Attributes> one_of_each(std::type_identity<std::variant<Ops...>>) {
  return {Ops{}...};
}
inline std::vector<Attributes> all_ops() { return one_of_each(std::type_identity<Attributes>()); }

/// For each node, whether its output must be kept for the backward pass, as its own rule or a consumer's
/// requires.
inline std::vector<bool> kept_for_backward(const Graph& graph) {
  std::vector<bool> kept(graph.nodes.size(), false);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Saved& saved = rule_of(graph.nodes[i].op).saved;
    if (saved.dst) kept[i] = true;
    if (!saved.src) continue;
    for (const int input : graph.nodes[i].inputs) kept[static_cast<std::size_t>(input)] = true;
  }
  return kept;
}

}  // namespace paceline::graph
