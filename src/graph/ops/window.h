#pragma once

/// The sliding window that convolution and pooling share: checked once, sized once.

#include "graph/ops/rules.h"

namespace paceline::graph {

struct SlidingWindow {
  int kernel = 1;
  int stride = 1;
  int padding = 0;
};

/// Positions of the window along `length` (rounded down, as PyTorch does).
[[nodiscard]] inline int positions(int length, const SlidingWindow& window) {
  return (length + 2 * window.padding - window.kernel) / window.stride + 1;
}

/// Height and width after the window has passed, with `channels` channels.
///
/// Errors   Error(usage) naming the op when the window is no window, or larger than the padded input
[[nodiscard]] Shape slide(const OpSite& site, const SlidingWindow& window, int channels);

}  // namespace paceline::graph
