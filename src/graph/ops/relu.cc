#include "graph/ops/rules.h"

namespace paceline::graph {

OpRule relu_rule() {
  return {.kind = "relu", .saved = {.dst = true}, .shape = [](const OpSite& site) { return site.src[0]; }};
}

}  // namespace paceline::graph
