#include "base/error.h"
#include "graph/ops/rules.h"
#include "graph/ops/window.h"

namespace paceline::graph {
namespace {

Shape shape(const OpSite& site) {
  const auto& pool = site.as<AveragePool>();
  // PyTorch's rule; it also keeps every window in touch with the image.
  if (2 * pool.padding > pool.kernel)
    base::fail(base::ErrorKind::usage,
               "average_pool '{}': padding must be at most half the kernel {}, but is {}; lower it",
               site.name, pool.kernel, pool.padding);
  return slide(site, {pool.kernel, pool.stride, pool.padding}, site.src[0].channels);
}

}  // namespace

OpRule make_rule(const AveragePool&) { return {.kind = "average_pool", .saved = {}, .shape = shape}; }

}  // namespace paceline::graph
