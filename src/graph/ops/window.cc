#include "graph/ops/window.h"

#include "base/error.h"

namespace paceline::graph {

using base::ErrorKind;
using base::fail;

Shape slide(const OpSite& site, const SlidingWindow& window, int channels) {
  const auto kind = rule_of(site.op).kind;
  const Shape& src = site.src[0];
  if (window.kernel < 1 || window.stride < 1)
    fail(ErrorKind::usage, "{} '{}': kernel and stride must be at least 1, but are {} and {}; correct them",
         kind, site.name, window.kernel, window.stride);
  if (window.padding < 0 || window.padding >= window.kernel)
    fail(ErrorKind::usage,
         "{} '{}': padding must be from 0 to kernel - 1 = {}, but is {}; use kernel / 2 to keep the size",
         kind, site.name, window.kernel - 1, window.padding);
  if (src.height + 2 * window.padding < window.kernel || src.width + 2 * window.padding < window.kernel)
    fail(ErrorKind::usage,
         "{} '{}': the kernel {} must fit into its input, but that is {} with padding {}; use a larger image "
         "or less downsampling before it",
         kind, site.name, window.kernel, text(src), window.padding);
  return {channels, positions(src.height, window), positions(src.width, window)};
}

}  // namespace paceline::graph
