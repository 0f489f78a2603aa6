#include <gtest/gtest.h>

#include "analysis/predict/clusters.h"
#include "analysis/predict/forecast.h"

namespace paceline::analysis {
namespace {

TEST(MeasuredCluster, ScalesEveryBandwidthOfALink) {
  auto cluster = round_cluster(8, Algorithm::shared_memory);
  cluster.node_link.total_bytes_per_s = Range::of(300e9);
  const auto twice = changed(cluster, {.bandwidth = 2});
  EXPECT_EQ(twice.node_link.bytes_per_s.low, 400e9);
  EXPECT_EQ(twice.node_link.total_bytes_per_s.low, 600e9);
  EXPECT_EQ(twice.network.bytes_per_s.low, 20e9);
}

}  // namespace
}  // namespace paceline::analysis
