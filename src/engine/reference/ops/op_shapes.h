#pragma once

/// OpShapes: the sizes that every op of the reference engine gets. Values are [batch][C][H][W], without
/// padding.

#include <cstddef>
#include <cstdint>

#include "graph/graph.h"

namespace paceline::engine::reference {

struct OpShapes {
  int batch = 0;
  graph::Shape src;
  graph::Shape dst;
  [[nodiscard]] std::int64_t src_elements() const { return batch * src.elements(); }
  [[nodiscard]] std::int64_t dst_elements() const { return batch * dst.elements(); }
};

}  // namespace paceline::engine::reference
