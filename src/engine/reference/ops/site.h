#pragma once

/// What every plain kernel is told about where it stands. Values are [batch][C][H][W], nothing padded.

#include <cstddef>
#include <cstdint>

#include "graph/graph.h"

namespace paceline::engine::reference {

struct Site {
  int batch = 0;
  graph::Shape src;
  graph::Shape dst;
  [[nodiscard]] std::int64_t src_elements() const { return batch * src.elements(); }
  [[nodiscard]] std::int64_t dst_elements() const { return batch * dst.elements(); }
};

}  // namespace paceline::engine::reference
