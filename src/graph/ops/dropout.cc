#include <fmt/core.h>

#include "base/error.h"
#include "graph/ops/rules.h"

namespace paceline::graph {
namespace {

Shape shape(const OpSite& site) {
  const double probability = site.as<Dropout>().probability;
  if (!(probability >= 0 && probability < 1))
    base::fail(base::ErrorKind::usage,
               "dropout '{}': probability must be in [0, 1), but is {}; 0.5 is common", site.name,
               probability);
  return site.src[0];
}

std::string attributes(const Attributes& op) {
  const auto& own = std::get<Dropout>(op);
  return fmt::format("probability {}", own.probability);
}

}  // namespace

// Nothing is saved: the mask is a pure function of seed and position and is computed again in the backward
// pass.
OpRule make_rule(const Dropout&) {
  return {.kind = "dropout", .in_place = true, .attributes = attributes, .shape = shape};
}

}  // namespace paceline::graph
