#pragma once

/// The sliding window of convolutions and pooling: its checks and output size.

#include "graph/ops/rules.h"

namespace paceline::graph {

struct SlidingWindow {
  int kernel = 1;
  int stride = 1;
  int padding = 0;
};

/// Number of positions of the window along `length` (rounded down, as in PyTorch).
[[nodiscard]] inline int positions(int length, const SlidingWindow& window) {
  return (length + 2 * window.padding - window.kernel) / window.stride + 1;
}

/// The output shape of a sliding window with `channels` output channels.
///
/// Errors   Error(usage) naming the op when the window is invalid or larger than the padded input
[[nodiscard]] Shape slide(const OpSite& site, const SlidingWindow& window, int channels);

}  // namespace paceline::graph
