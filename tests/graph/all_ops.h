#pragma once

/// One of every op that a graph can hold, for tests that nobody should have to extend by hand: they fail,
/// with the op's name, where a new one was forgotten.

#include <type_traits>
#include <variant>
#include <vector>

#include "graph/graph.h"

namespace paceline::graph {

template <typename... Ops>
std::vector<Attributes> one_of_each(std::type_identity<std::variant<Ops...>>) {
  return {Ops{}...};
}
inline std::vector<Attributes> all_ops() { return one_of_each(std::type_identity<Attributes>()); }

}  // namespace paceline::graph
