#include "graph/rates.h"

#include <fnmatch.h>

#include "base/error.h"
#include "base/text.h"

namespace paceline::graph {
namespace {

/// Whether the name, or what stands before one of its dots, is the pattern's.
bool matches(const std::string& pattern, const std::string& name) {
  for (auto end = name.find('.');; end = name.find('.', end + 1)) {
    if (fnmatch(pattern.c_str(), name.substr(0, end).c_str(), 0) == 0) return true;
    if (end == std::string::npos) return false;
  }
}

}  // namespace

std::vector<RateRule> frozen_rules(std::string_view patterns) {
  std::vector<RateRule> rules;
  if (patterns.empty()) return rules;
  for (std::string& pattern : base::parts(patterns))
    rules.push_back({.pattern = std::move(pattern), .factor = 0});
  return rules;
}

std::vector<RateRule> factor_rules(std::string_view factors) {
  std::vector<RateRule> rules;
  if (factors.empty()) return rules;
  for (const std::string& part : base::parts(factors)) {
    const auto equals = part.find('=');
    if (equals == std::string::npos || equals == 0)
      base::fail(
          base::ErrorKind::usage,
          "must be factors of layers or parameters between commas, such as fc=10,layer4=2, but has '{}'",
          part);
    rules.push_back(
        {.pattern = part.substr(0, equals),
         .factor = base::decimal(part.substr(equals + 1), {.least = 0, .most = 1e6, .open_below = true})});
  }
  return rules;
}

int last_layer(const Graph& graph) {
  int node = graph.logits();
  while (graph.nodes[static_cast<std::size_t>(node)].parameters.empty()) {
    const auto& inputs = graph.nodes[static_cast<std::size_t>(node)].inputs;
    if (inputs.size() != 1) return -1;
    node = inputs.front();
  }
  return node;
}

std::string set_rates(Graph& graph, const std::vector<RateRule>& rules) {
  const int last = last_layer(graph);
  std::vector<double> factors(graph.parameters.size(), 1.0);
  for (const RateRule& rule : rules) {
    const bool is_exception = rule.pattern.starts_with('!');
    const std::string pattern = rule.pattern.substr(is_exception ? 1 : 0);
    bool is_used = false;
    for (std::size_t i = 0; i < factors.size(); ++i) {
      const Parameter& parameter = graph.parameters[i];
      if (pattern == "all-but-last" ? parameter.node == last : !matches(pattern, parameter.name)) continue;
      factors[i] = is_exception ? 1 : rule.factor;
      is_used = true;
    }
    if (!is_used) return pattern;
  }
  for (Node& node : graph.nodes) {
    const auto is_zero = [&](int index) { return factors[static_cast<std::size_t>(index)] == 0; };
    if (auto* norm = std::get_if<BatchNorm>(&node.op))
      norm->is_frozen = norm->is_frozen || (is_zero(node.parameters[0]) && is_zero(node.parameters[1]));
    for (const int index : node.parameters)
      graph.parameters[static_cast<std::size_t>(index)].rate *= factors[static_cast<std::size_t>(index)];
  }
  return "";
}

}  // namespace paceline::graph
