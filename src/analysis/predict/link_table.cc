#include "analysis/predict/link_table.h"

namespace paceline::analysis {

LinkTable::LinkTable(std::span<const TimedAllReduce>) {}

void attach(Cluster& cluster, std::span<const TimedAllReduce> timed) {
  cluster.node_link.measured = std::make_shared<const LinkTable>(timed);
}

}  // namespace paceline::analysis
