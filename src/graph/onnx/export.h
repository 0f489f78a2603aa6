#pragma once

/// Exports a model as ONNX: what a checkpoint computes, for programs that know nothing of this one.

#include <span>
#include <string>
#include <utility>
#include <vector>

#include "graph/graph.h"
#include "graph/layout.h"

namespace paceline::graph::onnx {

/// What an exported model has besides graph and weights.
struct ModelFacts {
  /// Of the images' channels: the first node normalises by them; empty: none do.
  std::vector<float> mean = {}, stddev = {};
  std::string version = {};                                        ///< of this program
  std::string description = {};                                    ///< a few sentences
  std::vector<std::pair<std::string, std::string>> metadata = {};  ///< keys and texts
};

/// The file's bytes. Its input "input" is float [N, C, H, W], its output "logits" float [N, classes], with N
/// left open. Every op computes what it computes in evaluation, in fp32.
///
/// Shapes   weights [layout.elements]
/// Cost     twice the weights in memory
/// Errors   as require_exportable()
[[nodiscard]] std::string export_model(const Graph& graph, const Layout& layout,
                                       std::span<const float> weights, const ModelFacts& facts);

/// Call before the weights are read.
///
/// Errors   Error(data): the weights exceed the 2 GiB of a file
void require_exportable(const Graph& graph);

}  // namespace paceline::graph::onnx
