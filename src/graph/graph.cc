#include "graph/graph.h"

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

}  // namespace paceline::graph
