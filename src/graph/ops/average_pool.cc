#include <fmt/core.h>

#include "base/error.h"
#include "graph/ops/rules.h"
#include "graph/ops/window.h"

namespace paceline::graph {
namespace {

Shape shape(const OpSite& site) {
  const auto& pool = site.as<AveragePool>();
  // PyTorch's rule; it also ensures that every window overlaps the image.
  if (2 * pool.padding > pool.kernel)
    base::fail(base::ErrorKind::usage,
               "average_pool '{}': padding must be at most half the kernel {}, but is {}; lower it",
               site.name, pool.kernel, pool.padding);
  return slide(site, {pool.kernel, pool.stride, pool.padding}, site.src[0].channels);
}

std::string attributes(const Attributes& op) {
  const auto& own = std::get<AveragePool>(op);
  return fmt::format("kernel {}, stride {}, padding {}", own.kernel, own.stride, own.padding);
}

}  // namespace

OpRule make_rule(const AveragePool&) {
  return {.kind = "average_pool", .saved = {}, .attributes = attributes, .shape = shape};
}

}  // namespace paceline::graph
