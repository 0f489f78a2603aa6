#include "engine/channel_copies.h"

#include "base/error.h"

namespace paceline::engine {

std::vector<ChannelCopy> channel_copies(const graph::Graph& graph, int node) {
  const graph::Node& op = graph.nodes[static_cast<std::size_t>(node)];
  std::vector<ChannelCopy> copies;
  if (const auto* slice = op.as<graph::Slice>()) {
    copies.push_back({.from = slice->begin, .channels = slice->channels});
  } else if (const auto* shuffle = op.as<graph::ChannelShuffle>()) {
    const int channels = op.shape.channels / shuffle->groups;
    for (int group = 0; group < shuffle->groups; ++group)
      copies.push_back(
          {.from = group * channels, .to = group, .channels = channels, .step = shuffle->groups});
  } else {
    base::expects(op.as<graph::Concat>() != nullptr, "only concat, slice and channel_shuffle are copies");
    int to = 0;
    for (int input = 0; input < static_cast<int>(op.inputs.size()); ++input) {
      const int source = op.inputs[static_cast<std::size_t>(input)];
      const int channels = graph.nodes[static_cast<std::size_t>(source)].shape.channels;
      copies.push_back({.input = input, .to = to, .channels = channels});
      to += channels;
    }
  }
  return copies;
}

}  // namespace paceline::engine
