#include "graph/builder.h"

#include <algorithm>
#include <utility>

#include "base/error.h"
#include "graph/ops/rules.h"

namespace paceline::graph {

using base::ErrorKind;
using base::expects;
using base::fail;

namespace {

/// A larger array fits into no machine: this is 256 GB of floats.
constexpr double kMostElements = 0x1p36;

}  // namespace

Builder::Builder(std::string model_name) { graph_.name = std::move(model_name); }

int Builder::append(Attributes op, std::vector<int> inputs, std::string name) {
  const OpRule& rule = rule_of(op);
  const int index = static_cast<int>(graph_.nodes.size());
  expects((index == 0) == std::holds_alternative<Input>(op), "the input, and only it, is the first op");
  expects(index == 0 || !graph_.nodes.back().as<SoftmaxCrossEntropy>(), "nothing follows the loss");
  expects(static_cast<int>(inputs.size()) == rule.inputs, "an op has as many inputs as its rule says");

  std::vector<Shape> src;
  for (const int input : inputs) {
    expects(input >= 0 && input < index, "an op's inputs are earlier nodes");
    src.push_back(graph_.nodes[static_cast<std::size_t>(input)].shape);
  }
  if (name.empty()) name = unique_name(std::string(rule.kind));
  require_usable_name(rule.kind, name);

  Node node{.name = std::move(name),
            .op = std::move(op),
            .inputs = std::move(inputs),
            .shape = {},
            .parameters = {}};
  const OpSite site{node.name, node.op, src};
  node.shape = rule.shape(site);
  if (const auto* conv = node.as<Conv2d>(); conv && conv->init == Init::whiten && node.inputs.front() != 0)
    fail(ErrorKind::usage,
         "conv2d '{}': init \"whiten\" is for a layer on the image itself, but its input is '{}'; take "
         "another init",
         node.name, graph_.nodes[static_cast<std::size_t>(node.inputs.front())].name);
  if (rule.parameters != nullptr) {
    for (ParameterRule& parameter : rule.parameters(site)) {
      node.parameters.push_back(static_cast<int>(graph_.parameters.size()));
      graph_.parameters.push_back({.name = node.name + "." + parameter.suffix,
                                   .shape = std::move(parameter.shape),
                                   .role = parameter.role,
                                   .node = index,
                                   .rate = parameter.rate});
    }
  }
  require_possible_size(node);
  names_.insert(node.name);
  graph_.nodes.push_back(std::move(node));
  return index;
}

void Builder::require_usable_name(std::string_view kind, const std::string& name) const {
  if (names_.contains(name))
    fail(ErrorKind::usage,
         "{} '{}': the name must be used once in model '{}', but an earlier op has it; choose another", kind,
         name, graph_.name);
  // In checkpoints, arrays with these prefixes stand beside the parameters of all ops.
  for (const std::string_view prefix : {"optimizer.", "lookahead."})
    if (name.starts_with(prefix))
      fail(
          ErrorKind::usage,
          "{} '{}': names that begin with '{}' are those of the optimizer's arrays in checkpoints; choose another",
          kind, name, prefix);
}

void Builder::require_possible_size(const Node& node) {
  for (const int index : node.parameters) {
    double elements = 1;
    for (const auto extent : graph_.parameters[static_cast<std::size_t>(index)].shape)
      elements *= static_cast<double>(extent);
    elements_ += elements;
  }
  if (elements_ <= kMostElements && node.shape.elements() <= kMostElements) return;
  fail(ErrorKind::usage,
       "model '{}': up to '{}' it has {:.2g} weights, and one sample has {:.2g} values there; at most {:.2g} "
       "of each are possible: take fewer channels or features",
       graph_.name, node.name, elements_, static_cast<double>(node.shape.elements()), kMostElements);
}

const Shape& Builder::shape_of(int node) const {
  expects(node >= 0 && node < static_cast<int>(graph_.nodes.size()), "the node exists");
  return graph_.nodes[static_cast<std::size_t>(node)].shape;
}

Graph Builder::finish() {
  if (graph_.nodes.empty() || !graph_.nodes.back().as<SoftmaxCrossEntropy>())
    fail(ErrorKind::usage, "model '{}': its last op must be the loss, but is {}; end it with loss(...)",
         graph_.name, graph_.nodes.empty() ? "missing" : "'" + graph_.nodes.back().name + "'");
  std::vector<bool> used(graph_.nodes.size(), false);
  used.back() = true;
  for (const Node& node : graph_.nodes)
    for (const int input : node.inputs) used[static_cast<std::size_t>(input)] = true;
  for (std::size_t i = 0; i < used.size(); ++i)
    if (!used[i])
      fail(ErrorKind::usage,
           "model '{}': every op must lead to the loss, but no op uses '{}'; name it as an input or remove "
           "it",
           graph_.name, graph_.nodes[i].name);
  return std::exchange(graph_, {});
}

std::string Builder::unique_name(const std::string& kind) {
  for (int& number = last_numbers_[kind];;) {
    std::string name = kind + std::to_string(++number);
    if (!names_.contains(name)) return name;
  }
}

}  // namespace paceline::graph
