#include <gtest/gtest.h>

#include "analysis/predict/collective_cost.h"

namespace paceline::analysis {
namespace {

/// Seconds that the link adds to an all-reduce of a megabyte over `workers`.
double added_s(const AddedLink& link, int workers) {
  Cluster cluster{.nodes = 1, .workers_per_node = 64};
  cluster.algorithm = Algorithm::exchange;
  cluster.emulated = link;
  return all_reduce_cost(cluster, workers, 1e6).emulated_s;
}

// The same closed forms hold the emulation itself (tests/comm/emulate_test.cc).

TEST(AddedLink, OfTwoLevelsAddsHostsAndInside) {
  const AddedLink link{.latency_s = Range::of(1e-3),
                       .bytes_per_s = Range::of(1e9),
                       .per_host = 4,
                       .inside_latency_s = Range::of(10e-6),
                       .inside_bytes_per_s = Range::of(10e9)};
  EXPECT_DOUBLE_EQ(added_s(link, 1), 0);
  EXPECT_DOUBLE_EQ(added_s(link, 2), 2 * 10e-6 + 1e6 / 10e9);
  EXPECT_DOUBLE_EQ(added_s(link, 4), 6 * 10e-6 + 1.5e6 / 10e9);
  EXPECT_DOUBLE_EQ(added_s(link, 16), 6 * 10e-6 + 1.5e6 / 10e9 + 6 * 1e-3 + 1.5e6 / 1e9);
}

TEST(AddedLink, IsSlowerBeyondAnOversubscribedSwitch) {
  const AddedLink link{
      .latency_s = Range::of(1e-3), .bytes_per_s = Range::of(1e9), .per_switch = 4, .oversubscription = 2.5};
  EXPECT_DOUBLE_EQ(added_s(link, 4), 6e-3 + 1.5e-3);
  EXPECT_DOUBLE_EQ(added_s(link, 5), 8e-3 + 1.6e-3 * 2.5);
}

}  // namespace
}  // namespace paceline::analysis
