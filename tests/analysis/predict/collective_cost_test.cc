#include "analysis/predict/collective_cost.h"

#include <gtest/gtest.h>

#include "analysis/predict/clusters.h"

namespace paceline::analysis {
namespace {

constexpr double kIn = 2e-6, kOut = 10e-6;  // round_cluster's hops

TEST(CollectiveCost, OfOneWorkerIsNothing) {
  const auto cost = all_reduce_cost(round_cluster(8, Algorithm::automatic), 1, 1e9);
  EXPECT_EQ(cost.seconds, 0);
  EXPECT_EQ(cost.algorithm, Algorithm::automatic);
}

TEST(CollectiveCost, OfTheRingFollowsItsFormula) {
  auto cluster = round_cluster(8, Algorithm::ring);
  cluster.node_link.base_s = Range::of(5e-6);
  const auto cost = all_reduce_cost(cluster, 8, 1e9);
  EXPECT_NEAR(cost.latency_s, 5e-6 + 14 * kIn, 1e-15);
  EXPECT_NEAR(cost.transfer_s, 1.75 * 1e9 / 200e9, 1e-12);
  EXPECT_DOUBLE_EQ(cost.seconds, cost.latency_s + cost.transfer_s);
  cluster.adds_bytes_per_s = Range::of(100e9);
  EXPECT_NEAR(all_reduce_cost(cluster, 8, 1e9).transfer_s, 1.75 * 1e9 / 200e9 + 0.875 * 1e9 / 100e9, 1e-12);
}

TEST(CollectiveCost, OfNodesIsThatOfSlowestLink) {
  // 2 nodes of 8: 30 steps of 1 GB / 16 over two cards of 10 GB/s; four hops of 30 leave a node.
  const auto cost = all_reduce_cost(round_cluster(8, Algorithm::ring, 2), 16, 1e9);
  EXPECT_NEAR(cost.seconds, 30 * 1e9 / 16 / 20e9 + kOut, 1e-12);
  const auto small = all_reduce_cost(round_cluster(8, Algorithm::ring, 2), 16, 1);
  EXPECT_NEAR(small.seconds, 4 * kOut + 26 * kIn, 1e-9);
}

TEST(CollectiveCost, OfOtherAlgorithmsFollowsTheirFormulas) {
  struct Case {
    Algorithm algorithm;
    int in_node, workers;
    double bytes, seconds;
  };
  const double ring_in = 14 * kIn + 1.75 * 1e9 / 200e9;
  const Case cases[] = {
      {Algorithm::halving_doubling, 8, 8, 1e9, 6 * kIn + 1.75 * 1e9 / 200e9},
      {Algorithm::halving_doubling, 8, 6, 1e9, 4 * kIn + 1.5 * 1e9 / 200e9 + 2 * (kIn + 1e9 / 200e9)},
      {Algorithm::hierarchical, 8, 16, 1e9, ring_in + 2 * kOut + 1e9 / 8 / (10e9 / 8)},
      {Algorithm::hierarchical, 8, 8, 1e9, ring_in},
      {Algorithm::exchange, 1, 4, 8192, kOut + 3 * 8192 / 10e9},
      {Algorithm::exchange, 1, 4, 4 << 20, 5 * kOut + 1.5 * (4 << 20) / 10e9},
      {Algorithm::shared_memory, 8, 8, 1e9, 2 * kIn + 2 * 1e9 / 200e9},
      // Two ranks: each is the root of one tree and the leaf of the other.
      {Algorithm::tree, 1, 2, 16384, 2 * (kOut + 8192 / 10e9)},
      // Four: two levels; the last hop to the root, and the first from it, have half of the bytes.
      {Algorithm::tree, 1, 4, 16384, 2 * (2 * kOut + 1.5 * 16384 / 10e9)},
  };
  for (const auto& one : cases) {
    const auto cost = all_reduce_cost(round_cluster(one.in_node, one.algorithm), one.workers, one.bytes);
    EXPECT_NEAR(cost.seconds, one.seconds, 1e-9 * one.seconds) << name(one.algorithm) << " " << one.workers;
  }
}

TEST(CollectiveCost, InTheSwitchReachesItsBusBandwidth) {
  auto cluster = round_cluster(8, Algorithm::in_switch);
  cluster.node_link.bytes_per_s = Range::of(309e9);
  const double bytes = 16e9, seconds = all_reduce_cost(cluster, 8, bytes).seconds;
  // 8 H200: 309 GB/s on the wire are a busbw of 480 GB/s.
  EXPECT_NEAR(1.75 * bytes / seconds / 1e9, 309 * 14 / 9.0, 0.5);
  cluster.node_link.in_switch = cluster.network.in_switch = true;
  cluster.network.nodes_per_switch = 4;
  // Nine nodes under switches of four: two tiers, up and down.
  const auto many = all_reduce_cost(cluster, 72, 8e9);
  EXPECT_NEAR(many.latency_s, kIn + 4 * kOut, 1e-12);
}

TEST(CollectiveCost, TakesTheFastestThatThereIs) {
  auto cluster = round_cluster(8, Algorithm::automatic, 8);
  EXPECT_EQ(all_reduce_cost(cluster, 8, 1e6).algorithm, Algorithm::ring);
  EXPECT_EQ(all_reduce_cost(cluster, 512, 1e4).algorithm, Algorithm::tree);
  cluster.node_link.in_switch = true;
  EXPECT_EQ(all_reduce_cost(cluster, 8, 1e9).algorithm, Algorithm::in_switch);
  for (const int workers : {2, 8, 16, 100, 512})
    for (const double bytes : {1e3, 1e6, 1e9}) {
      cluster.algorithm = Algorithm::automatic;
      const double fastest = all_reduce_cost(cluster, workers, bytes).seconds;
      for (const auto other : {Algorithm::ring, Algorithm::in_switch}) {
        cluster.algorithm = other;
        EXPECT_LE(fastest, all_reduce_cost(cluster, workers, bytes).seconds) << workers << " " << bytes;
      }
    }
}

TEST(CollectiveCost, AddsTheEmulatedLinkAsCommDoes) {
  // comm/emulate.h: 2 (N-1) latency + 2 (N-1)/N X / bandwidth.
  Cluster cluster;
  cluster.workers_per_node = 16;
  cluster.emulated = AddedLink{Range::of(50e-6), Range::of(1e9), false};
  const auto cost = all_reduce_cost(cluster, 16, 4e6);
  EXPECT_NEAR(cost.emulated_s, 30 * 50e-6 + 30.0 / 16 * 4e6 / 1e9, 1e-15);
  EXPECT_DOUBLE_EQ(cost.seconds, cost.emulated_s);
  cluster.emulated->between_nodes = true;
  EXPECT_EQ(all_reduce_cost(cluster, 16, 4e6).emulated_s, 0);
  cluster.workers_per_node = 4;
  cluster.nodes = 4;
  EXPECT_NEAR(all_reduce_cost(cluster, 16, 4e6).emulated_s, 6 * 50e-6 + 1.5 * 4e6 / 1e9, 1e-15);
}

TEST(CollectiveCost, DividesWhatLeavesASwitch) {
  auto cluster = round_cluster(1, Algorithm::ring);
  cluster.network.nodes_per_switch = 4;
  cluster.network.oversubscription = Range::of(3);
  const auto transfer = [&](int workers) { return all_reduce_cost(cluster, workers, 1e9).transfer_s; };
  EXPECT_NEAR(transfer(4), 1.5 * 1e9 / 10e9, 1e-9);
  EXPECT_NEAR(transfer(8), 1.75 * 1e9 / 10e9 * 3, 1e-9);
  cluster.algorithm = Algorithm::exchange;  // 4 of 8 processes are behind the other switch
  EXPECT_NEAR(transfer(8), 2 * 1e9 / 10e9 * 4 / 8 * 3, 1e-9);
}

}  // namespace
}  // namespace paceline::analysis
