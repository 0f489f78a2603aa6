#pragma once

/// All-reduces that were timed over one level of links, as a curve over sizes for each number of ranks.

#include <span>
#include <vector>

#include "analysis/predict/cluster.h"

namespace paceline::analysis {

class LinkTable {
 public:
  explicit LinkTable(std::span<const TimedAllReduce> timed);
};

}  // namespace paceline::analysis
