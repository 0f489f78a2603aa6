#pragma once

/// Which layers of a model learn, and how fast: factors by patterns of names, for fine-tuning.
///
/// A pattern matches a parameter ("fc.weight"), or a layer or module with all its parameters ("fc", "layer1"
/// for layer1.0.conv1.weight and others); `*` stands for any characters, dots too. "all-but-last" is every
/// layer but the one that makes the logits. A `!` before a pattern gives its parameters the factor 1 again.

#include <string>
#include <string_view>
#include <vector>

#include "graph/graph.h"

namespace paceline::graph {

struct RateRule {
  std::string pattern;
  double factor = 1;  ///< of the learning rate, on top of what it is (Rates); 0 freezes
};

/// The rules of "layer1,!layer1.bn1": factor 0 for each.
///
/// Errors   Error(usage) without a place, for these two: a pattern is empty, a factor is no number above 0
[[nodiscard]] std::vector<RateRule> frozen_rules(std::string_view patterns);
/// The rules of "fc=10,layer4=2".
[[nodiscard]] std::vector<RateRule> factor_rules(std::string_view factors);

/// Applies the rules; of several that match a parameter the last one counts. A batch norm whose weight and
/// bias both get 0 is frozen as a whole: its running statistics stay, and training normalises with them.
///
/// Cost     one pass over the parameters for each rule
/// Returns  the first pattern that matches no parameter; empty: each matches one
std::string set_rates(Graph& graph, const std::vector<RateRule>& rules);

/// The node whose weights make the logits, through ops without weights; -1 if several inputs meet before one.
[[nodiscard]] int last_layer(const Graph& graph);

}  // namespace paceline::graph
