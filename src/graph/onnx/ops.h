#pragma once

/// How each op becomes nodes of ONNX.
///
/// Each op has a write_op() in ops.cc, norm_ops.cc or token_ops.cc. A program without that of an op is not
/// linked.

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"
#include "graph/layout.h"
#include "graph/onnx/graph_writer.h"

namespace paceline::graph::onnx {

/// The output of an op: [N, C, H, W], or [N, C] as dense layers make it.
struct Value {
  std::string name;
  bool is_image = true;
};

/// One op as its write_op() sees it.
struct OpToWrite {
  GraphWriter& to;
  const Graph& graph;
  const Layout& layout;
  std::span<const float> weights;
  const Node& node;
  std::vector<Value> src;

  [[nodiscard]] const Shape& src_shape(std::size_t i = 0) const {
    return graph.nodes[static_cast<std::size_t>(node.inputs[i])].shape;
  }
  /// An input as [N, C, H, W], or as [N, C * H * W].
  [[nodiscard]] std::string image(std::size_t i = 0) const;
  [[nodiscard]] std::string features(std::size_t i = 0) const;
  /// The array of the op's i-th parameter, with its name, as `shape` if that is given.
  [[nodiscard]] std::string parameter(std::size_t i, const Numbers& shape = {}) const;
  [[nodiscard]] std::span<const float> values_of_parameter(std::size_t i) const;
  /// Nodes and arrays between: "<node>.<what>".
  [[nodiscard]] std::string step(std::string_view what, std::string_view op, std::vector<std::string> inputs,
                                 std::vector<Attribute> attributes = {}) const;
  [[nodiscard]] std::string constant(std::string_view what, float value) const;
  [[nodiscard]] std::string constant(std::string_view what, const Numbers& values) const;
  /// The last node of the op, which makes [N, C, H, W], or [N, C] if not `is_image`.
  [[nodiscard]] Value last(std::string_view op, std::vector<std::string> inputs,
                           std::vector<Attribute> attributes = {}, bool is_image = true) const;
};

#define PACELINE_ONNX(Op, name) Value write_op(const OpToWrite& site, const Op& op);
PACELINE_OPS(PACELINE_ONNX)
#undef PACELINE_ONNX

}  // namespace paceline::graph::onnx
