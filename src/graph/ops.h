#pragma once

/// What the graph knows of each op, independent of devices: output shape, parameters, what the backward pass
/// needs from the forward pass, and cost.
///
/// Each op has a make_rule() in ops.cc, window_ops.cc, norm_ops.cc or token_ops.cc. A program without that of
/// an op is not linked.
///
/// Threads  any; the rules are constant

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace paceline::graph {

/// One node as its rule sees it: the node's name (for errors), its attributes, its inputs' shapes.
struct OpSite {
  std::string_view name;
  const Attributes& op;
  std::span<const Shape> src;
  template <typename Op>
  [[nodiscard]] const Op& as() const {
    return std::get<Op>(op);
  }
};

/// A parameter that the op owns; its full name is "<node>.<suffix>".
struct ParameterRule {
  std::string suffix;
  std::vector<std::int64_t> shape;
  Role role = Role::weight;
  double rate = 1;  ///< see Rates
};

/// What the backward pass needs from the forward pass.
struct Saved {
  bool src = false;         ///< the op's input
  bool dst = false;         ///< the op's output
  bool mask = false;        ///< a small integer for each output element (which of a window was chosen)
  bool statistics = false;  ///< mean and inverse deviation of each channel
};

constexpr int kSeveral = -1;

struct OpRule {
  std::string_view kind = {};  ///< "conv2d", from PACELINE_OPS: in generated names, in errors, in model files
  int inputs = 1;              ///< kSeveral: two or more
  Saved saved = {};
  /// Each element of d_src depends only on the same element of d_dst (and, for a batch norm, on sums). So an
  /// engine may store d_src over d_dst.
  bool in_place = false;
  /// Shape of the output.
  ///
  /// Errors   Error(usage) when attributes or input shapes are invalid
  Shape (*shape)(const OpSite& site) = nullptr;
  /// The parameters, in the op's own order; null: none.
  std::vector<ParameterRule> (*parameters)(const OpSite& site) = nullptr;
  /// Multiply-adds of one sample's forward pass; null: not counted.
  std::int64_t (*multiply_adds)(const OpSite& site, const Shape& dst) = nullptr;
  /// Those of the backward pass, for each direction that is needed (data, weights), as a multiple of them.
  double backward_cost = 1;
};

/// The rule of an op.
[[nodiscard]] const OpRule& rule_of(const Attributes& op);

/// The attributes that change what a trained model computes, as model files have them: "channels 8, kernel
/// 3";
/// "" if there are none. A checkpoint's text is read again from it.
[[nodiscard]] std::string attributes_text(const Attributes& op);

/// Multiply-adds of a node of a finished graph.
[[nodiscard]] std::int64_t multiply_adds(const Graph& graph, int node);

/// Whether the node has a parameter that is not frozen. Engines leave the gradients of other nodes at zero.
[[nodiscard]] bool learns(const Graph& graph, int node);

/// For each node, whether its output depends on a parameter that learns. Only then must a consumer send a
/// gradient back to it (the first convolution never computes d_src). A batch norm whose running statistics
/// move always gets one, since they travel with the gradients.
[[nodiscard]] std::vector<bool> needs_gradient(const Graph& graph);

/// Errors   Error(usage), naming the op, for a rate that is negative or not a number
void check_rates(const OpSite& site, const Rates& rates);

/// "[64,32,32]": channels, height, width.
[[nodiscard]] std::string text(const Shape& shape);
/// "3", or "1x7": height, width.
[[nodiscard]] std::string text(const Pair& pair);

/// The sliding window of convolutions and pooling.
struct SlidingWindow {
  Pair kernel = 1;
  Pair stride = 1;
  Pair padding = 0;
  Pair dilation = 1;
  bool ceil = false;
};

#define PACELINE_RULE(Op, name) OpRule make_rule(const Op&);
PACELINE_OPS(PACELINE_RULE)
#undef PACELINE_RULE

}  // namespace paceline::graph
