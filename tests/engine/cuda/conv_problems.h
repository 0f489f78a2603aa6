#pragma once

#include <vector>

#include "engine/cuda/conv_problem.h"

namespace paceline::engine::cuda {

/// The problems of all Conv2d and Dense nodes, in the order of the nodes, three directions each.
inline std::vector<ConvProblem> conv_problems(const graph::Graph& graph, int batch, Precision precision) {
  std::vector<ConvProblem> problems;
  for (const graph::Node& node : graph.nodes)
    if (node.as<graph::Conv2d>() != nullptr || node.as<graph::Dense>() != nullptr)
      for (const ConvDirection direction :
           {ConvDirection::forward, ConvDirection::backward_data, ConvDirection::backward_weights})
        problems.push_back(conv_problem(graph, node, batch, precision, direction));
  return problems;
}

}  // namespace paceline::engine::cuda
