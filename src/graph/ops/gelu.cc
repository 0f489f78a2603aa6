#include "graph/ops/rules.h"

namespace paceline::graph {

OpRule gelu_rule() {
  return {.kind = "gelu", .saved = {.src = true}, .shape = [](const OpSite& site) { return site.src[0]; }};
}

}  // namespace paceline::graph
