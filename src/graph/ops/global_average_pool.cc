#include "graph/ops/rules.h"

namespace paceline::graph {

OpRule make_rule(const GlobalAveragePool&) {
  return {.kind = "global_average_pool", .shape = [](const OpSite& site) {
            return Shape{site.src[0].channels, 1, 1};
          }};
}

}  // namespace paceline::graph
