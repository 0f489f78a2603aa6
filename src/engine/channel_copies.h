#pragma once

/// Concat, slice and channel_shuffle as copies of channels, which all engines follow.

#include <vector>

#include "graph/graph.h"

namespace paceline::engine {

/// Channel from + i of the op's input number `input` becomes channel to + i * step of its output, for
/// i < channels, in every pixel.
struct ChannelCopy {
  int input = 0;
  int from = 0, to = 0, channels = 0, step = 1;
};

/// The copies of a concat, slice or channel_shuffle. Together they write each channel of the output once.
[[nodiscard]] std::vector<ChannelCopy> channel_copies(const graph::Graph& graph, int node);

}  // namespace paceline::engine
