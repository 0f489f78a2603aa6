#include "graph/ops/rules.h"

namespace paceline::graph {

OpRule global_average_pool_rule() {
  return {.kind = "global_average_pool", .shape = [](const OpSite& site) {
            return Shape{site.src[0].channels, 1, 1};
          }};
}

}  // namespace paceline::graph
