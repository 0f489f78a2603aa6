#pragma once

/// What the graph knows of each op, device apart: the shape it gives, the parameters it owns, what its
/// backward pass needs kept from the forward pass, and what it costs.
///
/// One op is one file here (`conv2d.cc`, ...) that makes its OpRule, and one line at the end of this header:
/// an op of Attributes without them does not compile. Constant after start; any thread may read.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace paceline::graph {

/// One use of an op, as its rule sees it: the node's name (for errors), its attributes, its inputs' shapes.
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
  double rate = 1;  ///< of Rates
};

/// The gradient rule's appetite: what must live from forward to backward.
struct Saved {
  bool src = false;         ///< the op's input
  bool dst = false;         ///< the op's output
  bool mask = false;        ///< one small integer for each output element (which of the window won)
  bool statistics = false;  ///< mean and inverse deviation of each channel
};

struct OpRule {
  std::string_view kind;  ///< "conv2d": in generated names, in errors, in model files
  int inputs = 1;
  Saved saved = {};
  /// The gradient at a place of each source follows from the output's at that place (and, of a batch norm,
  /// from sums): an engine may store d_src over d_dst.
  bool in_place = false;
  /// The op's own numbers that change what a trained model computes, as text; null: it has none.
  std::string (*attributes)(const Attributes& op) = nullptr;
  /// Shape of the output. Errors: Error(usage) when attributes or input shapes make no sense.
  Shape (*shape)(const OpSite& site) = nullptr;
  /// In the op's own order; null: none.
  std::vector<ParameterRule> (*parameters)(const OpSite& site) = nullptr;
  /// Of one sample's forward pass; null: none that count. Each backward product costs the same again.
  std::int64_t (*multiply_adds)(const OpSite& site, const Shape& dst) = nullptr;
};

/// The table, looked up.
[[nodiscard]] const OpRule& rule_of(const Attributes& op);

/// The same by node of a built graph.
[[nodiscard]] std::int64_t multiply_adds(const Graph& graph, int node);

/// Whether any of the node's own parameters follows gradients: it has some, and not all are frozen. Engines
/// leave the gradients of a node that does not learn at zero.
[[nodiscard]] bool learns(const Graph& graph, int node);

/// Whether anything that `node` computes depends on a parameter that learns: only then does a consumer need
/// to send a gradient back to it (the first convolution never computes d_src). A batch norm always takes one,
/// even a frozen one: its statistics travel with the gradients.
[[nodiscard]] std::vector<bool> needs_gradient(const Graph& graph);

/// Whether the output of each node must be kept for the backward pass: its own rule or a consumer's asks for
/// it.
[[nodiscard]] std::vector<bool> kept_for_backward(const Graph& graph);

/// Errors   Error(usage), naming the op, for a rate that is negative or no number
void check_rates(const OpSite& site, const Rates& rates);

/// "[64,32,32]": channels, height, width.
[[nodiscard]] std::string text(const Shape& shape);

// The rules, each in its own file; rule_of() has them all.
OpRule make_rule(const Input&);
OpRule make_rule(const Conv2d&);
OpRule make_rule(const Dense&);
OpRule make_rule(const BatchNorm&);
OpRule make_rule(const Relu&);
OpRule make_rule(const Gelu&);
OpRule make_rule(const MaxPool&);
OpRule make_rule(const AveragePool&);
OpRule make_rule(const GlobalAveragePool&);
OpRule make_rule(const Add&);
OpRule make_rule(const Dropout&);
OpRule make_rule(const SoftmaxCrossEntropy&);

}  // namespace paceline::graph
