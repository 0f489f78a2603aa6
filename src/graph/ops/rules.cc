#include "graph/ops/rules.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>
#include <variant>

#include "base/error.h"

namespace paceline::graph {
namespace {

/// The rules in the order of the variant's alternatives.
template <typename... Ops>
std::array<OpRule, sizeof...(Ops)> rules_of(std::type_identity<std::variant<Ops...>>) {
  return {make_rule(Ops{})...};
}

std::vector<Shape> input_shapes(const Graph& graph, const Node& node) {
  std::vector<Shape> shapes;
  for (const int input : node.inputs) shapes.push_back(graph.nodes[static_cast<std::size_t>(input)].shape);
  return shapes;
}

}  // namespace

const OpRule& rule_of(const Attributes& op) {
  static const auto rules = rules_of(std::type_identity<Attributes>());
  return rules[op.index()];
}

std::int64_t multiply_adds(const Graph& graph, int index) {
  const Node& node = graph.nodes[static_cast<std::size_t>(index)];
  const OpRule& rule = rule_of(node.op);
  if (rule.multiply_adds == nullptr) return 0;
  const auto src = input_shapes(graph, node);
  return rule.multiply_adds({node.name, node.op, src}, node.shape);
}

bool learns(const Graph& graph, int node) {
  const auto& parameters = graph.nodes[static_cast<std::size_t>(node)].parameters;
  return std::any_of(parameters.begin(), parameters.end(), [&](int index) {
    const Parameter& parameter = graph.parameters[static_cast<std::size_t>(index)];
    return is_trainable(parameter.role) && !parameter.is_frozen();
  });
}

std::vector<bool> needs_gradient(const Graph& graph) {
  std::vector<bool> needs(graph.nodes.size(), false);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    needs[i] = learns(graph, static_cast<int>(i)) || graph.nodes[i].as<BatchNorm>() != nullptr;
    for (const int input : graph.nodes[i].inputs)
      needs[i] = needs[i] || needs[static_cast<std::size_t>(input)];
  }
  return needs;
}

std::vector<bool> kept_for_backward(const Graph& graph) {
  std::vector<bool> kept(graph.nodes.size(), false);
  for (std::size_t i = 0; i < graph.nodes.size(); ++i) {
    const Saved& saved = rule_of(graph.nodes[i].op).saved;
    if (saved.dst) kept[i] = true;
    if (!saved.src) continue;
    for (const int input : graph.nodes[i].inputs) kept[static_cast<std::size_t>(input)] = true;
  }
  return kept;
}

void check_rates(const OpSite& site, const Rates& rates) {
  for (const double rate : {rates.weight, rates.bias})
    if (!(rate >= 0) || !std::isfinite(rate))
      base::fail(
          base::ErrorKind::usage,
          "{} '{}': weight_rate and bias_rate are factors of the learning rate, 0 or more, but one is {}; "
          "0 freezes, 1 is usual",
          rule_of(site.op).kind, site.name, rate);
}

std::string text(const Shape& shape) {
  return fmt::format("[{},{},{}]", shape.channels, shape.height, shape.width);
}

}  // namespace paceline::graph
