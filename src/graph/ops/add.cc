#include "base/error.h"
#include "graph/ops/rules.h"

namespace paceline::graph {
namespace {

Shape shape(const OpSite& site) {
  if (site.src[0] != site.src[1])
    base::fail(base::ErrorKind::usage,
               "add '{}': both inputs must have one shape, but have {} and {}; give the shortcut a 1x1 "
               "convolution with the same stride and channels as the branch",
               site.name, text(site.src[0]), text(site.src[1]));
  return site.src[0];
}

}  // namespace

OpRule make_rule(const Add&) { return {.kind = "add", .inputs = 2, .in_place = true, .shape = shape}; }

}  // namespace paceline::graph
