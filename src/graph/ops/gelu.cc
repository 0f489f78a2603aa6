#include "graph/ops/rules.h"

namespace paceline::graph {

OpRule make_rule(const Gelu&) {
  return {.kind = "gelu", .saved = {.src = true}, .in_place = true, .shape = [](const OpSite& site) {
            return site.src[0];
          }};
}

}  // namespace paceline::graph
