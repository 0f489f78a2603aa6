#include "graph/initialise.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/rng.h"

namespace paceline::graph {
namespace {

std::vector<bool> nodes_feeding_batch_norm(const Graph& graph) {
  std::vector<bool> feeds(graph.nodes.size(), false);
  for (const Node& node : graph.nodes)
    if (node.as<BatchNorm>()) feeds[static_cast<std::size_t>(node.inputs.front())] = true;
  return feeds;
}

/// Number of elements that are summed into one output.
std::int64_t fan_in(const Graph& graph, const Node& owner) {
  const Parameter& weight = graph.parameters[static_cast<std::size_t>(owner.parameters.front())];
  return weight.elements() / weight.shape.front();
}

Init init_of_node(const Node& node) {
  if (const auto* conv = node.as<Conv2d>()) return conv->init;
  return node.as<Dense>()->init;
}

void draw_uniformly(std::span<float> part, std::int64_t fan_in, base::Rng& rng) {
  const auto bound = static_cast<float>(1 / std::sqrt(static_cast<double>(fan_in)));
  std::ranges::generate(part, [&] { return bound * (2 * rng.uniform() - 1); });
}

/// weight [K, C, R, R]: filter i is 1 in the middle of channel i and 0 elsewhere, as long as both exist.
void pass_on(const Parameter& parameter, std::span<float> weight) {
  const auto filters = static_cast<std::size_t>(parameter.shape[0]);
  const auto channels = static_cast<std::size_t>(parameter.shape[1]);
  const auto kernel = static_cast<std::size_t>(parameter.shape[2]);
  const std::size_t taps = kernel * kernel, middle = kernel / 2 * kernel + kernel / 2;
  for (std::size_t i = 0; i < std::min(filters, channels); ++i) {
    std::ranges::fill(weight.subspan(i * channels * taps, channels * taps), 0.0f);
    weight[i * channels * taps + i * taps + middle] = 1;
  }
}

}  // namespace

void initialise(const Graph& graph, const Layout& layout, std::uint64_t seed, std::span<float> weights) {
  base::expects(static_cast<std::int64_t>(weights.size()) == layout.elements,
                "the array has the layout's size");
  std::ranges::fill(weights, 0.0f);
  const std::vector<bool> feeds_norm = nodes_feeding_batch_norm(graph);
  for (const Slot& slot : layout.slots) {
    const Parameter& parameter = graph.parameters[static_cast<std::size_t>(slot.parameter)];
    const Node& owner = graph.nodes[static_cast<std::size_t>(parameter.node)];
    const auto part =
        weights.subspan(static_cast<std::size_t>(slot.offset), static_cast<std::size_t>(slot.elements));
    base::Rng rng(seed, base::Purpose::weight, static_cast<std::uint64_t>(slot.parameter));
    switch (parameter.role) {
      case Role::weight:
        if (init_of_node(owner) == Init::zero) break;
        if (const auto* conv = owner.as<Conv2d>();
            conv && feeds_norm[static_cast<std::size_t>(parameter.node)]) {
          const double fan_out = static_cast<double>(conv->channels) * conv->kernel * conv->kernel;
          const auto deviation = static_cast<float>(std::sqrt(2 / fan_out));
          std::ranges::generate(part, [&] { return deviation * rng.normal(); });
        } else {
          draw_uniformly(part, fan_in(graph, owner), rng);
        }
        if (init_of_node(owner) == Init::dirac) pass_on(parameter, part);
        break;
      case Role::bias:
        draw_uniformly(part, fan_in(graph, owner), rng);
        break;
      case Role::norm_weight:
        std::ranges::fill(part, owner.as<BatchNorm>()->init == Init::zero ? 0.0f : 1.0f);
        break;
      case Role::running_var:
        std::ranges::fill(part, 1.0f);
        break;
      case Role::norm_bias:
      case Role::running_mean:
        break;
    }
  }
}

}  // namespace paceline::graph
