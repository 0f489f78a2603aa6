#include "analysis/predict/simulate_messages.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdio>

#include "analysis/predict/clusters.h"
#include "analysis/predict/collective_cost.h"

namespace paceline::analysis {
namespace {

TEST(SimulateMessages, SharesPortsFairly) {
  const auto cluster = round_cluster(8, Algorithm::ring);
  MessageSchedule schedule;
  // Two messages into rank 2 share its port; the one from 3 to 4 has its own; 0 to 1 has what 0 has left.
  (void)schedule.send(0, 2, 100e9);
  (void)schedule.send(1, 2, 50e9);
  EXPECT_NEAR(finish_seconds(schedule, cluster, 8), 0.75 + 2e-6, 1e-9);  // 0.5 s at half, 50 GB at all
  (void)schedule.send(3, 4, 300e9);
  EXPECT_NEAR(finish_seconds(schedule, cluster, 8), 1.5 + 2e-6, 1e-9);
}

TEST(SimulateMessages, GivesOthersWhatAFlowLeaves) {
  const auto cluster = round_cluster(8, Algorithm::ring);
  MessageSchedule schedule;
  // Three into rank 2 get a third of its port each; so rank 1 has two thirds of its own for rank 4.
  for (const int from : {0, 1, 3}) (void)schedule.send(from, 2, 200e9 / 3);
  (void)schedule.send(1, 4, 400e9 / 3);
  EXPECT_NEAR(finish_seconds(schedule, cluster, 8), 1 + 2e-6, 1e-9);
}

TEST(SimulateMessages, SharesWhatLeavesASwitch) {
  auto cluster = round_cluster(1, Algorithm::ring);
  cluster.network.nodes_per_switch = 2;
  cluster.network.oversubscription = Range::of(2);
  MessageSchedule schedule;  // nodes 0 and 2 are on one switch, 1 and 3 on the other
  (void)schedule.send(0, 1, 10e9);
  (void)schedule.send(2, 3, 10e9);
  (void)schedule.send(1, 3, 5e9);
  EXPECT_NEAR(finish_seconds(schedule, cluster, 4), 2 + 10e-6, 1e-9);
}

/// How far the formula of a case is from its messages, printed where it is more than 1 %. None: it has no
/// messages, as a hierarchy with a node that is not full.
std::optional<double> deviation(const Cluster& cluster, int workers, double bytes) {
  const auto simulated = simulated_all_reduce(cluster, workers, bytes);
  if (!simulated) return std::nullopt;
  const auto cost = all_reduce_cost(cluster, workers, bytes);
  const double error = cost.seconds / *simulated - 1;
  if (std::abs(error) > 0.01)
    std::printf("deviation: %-16s N %3d, %d in a node, %10.0f B, %s: %+.1f %%\n",
                std::string(name(cost.algorithm)).c_str(), workers, cluster.workers_per_node, bytes,
                cluster.network.oversubscription.low > 1 ? "oversubscribed" : "", 100 * error);
  return error;
}

bool is_power_of_two(int number) { return std::has_single_bit(static_cast<unsigned>(number)); }

constexpr int kWorkers[] = {2, 3, 4, 5, 6, 7, 8, 12, 16, 24, 31, 32, 48, 63, 64};
constexpr double kBytes[] = {4e3, 1e5, 3e6, 2e7};

/// Within 1 % where all nodes are full, 5 % elsewhere.
TEST(SimulateMessages, AgreesWithRings) {
  for (const auto algorithm : {Algorithm::ring, Algorithm::hierarchical})
    for (const int in_node : {1, 2, 4, 8})
      for (const int workers : kWorkers)
        for (const double bytes : kBytes)
          for (const double adds : {0.0, 20e9}) {
            auto cluster = round_cluster(in_node, algorithm, in_node > 2 ? 2 : 1);
            cluster.adds_bytes_per_s = Range::of(adds);
            const auto error = deviation(cluster, workers, bytes);
            if (!error && algorithm == Algorithm::hierarchical && workers % in_node != 0) continue;
            ASSERT_TRUE(error) << name(algorithm) << " " << workers << " " << in_node;
            EXPECT_LE(std::abs(*error), workers % in_node == 0 ? 0.01 : 0.05)
                << name(algorithm) << " " << workers << " " << in_node << " " << bytes << " " << adds;
          }
}

TEST(SimulateMessages, AgreesWithTheExchangeWithin1Percent) {
  for (const int workers : kWorkers)
    for (const double bytes : {4e3, 1e5, 3.5e6})
      for (const bool is_oversubscribed : {false, true}) {
        if (is_oversubscribed && workers % 8 != 0) continue;  // below: uneven switches
        auto cluster = round_cluster(1, Algorithm::exchange);
        cluster.network.message_s = Range::of(is_oversubscribed ? 0 : 2e-6);
        cluster.adds_bytes_per_s = Range::of(20e9);
        if (is_oversubscribed) {
          cluster.network.nodes_per_switch = 4;
          cluster.network.oversubscription = Range::of(3);
        }
        const auto error = deviation(cluster, workers, bytes);
        ASSERT_TRUE(error) << workers;
        EXPECT_LE(std::abs(*error), 0.01) << workers << " " << bytes;
      }
}

TEST(SimulateMessages, AgreesWithHalvingDoublingWithin1Percent) {
  for (const int in_node : {1, 8})
    for (const int workers : kWorkers)
      for (const double bytes : kBytes) {
        const auto error = deviation(round_cluster(in_node, Algorithm::halving_doubling), workers, bytes);
        if (!error && !is_power_of_two(workers)) continue;
        ASSERT_TRUE(error) << workers << " " << in_node;
        EXPECT_LE(std::abs(*error), 0.01) << workers << " " << in_node << " " << bytes;
      }
}

TEST(SimulateMessages, AgreesWithTrees) {
  for (const int in_node : {1, 4, 8})
    for (const int workers : kWorkers)
      for (const double bytes : kBytes)
        for (const double message_s : {0.0, 2e-6}) {
          auto cluster = round_cluster(in_node, Algorithm::tree);
          cluster.network.message_s = Range::of(message_s);
          if (message_s == 0 && bytes > 1e7) continue;  // a thousand parts
          const auto error = deviation(cluster, workers, bytes);
          ASSERT_TRUE(error) << workers << " " << in_node;
          EXPECT_LE(std::abs(*error), is_power_of_two(workers) ? 0.01 : 0.05)
              << workers << " " << in_node << " " << bytes << " " << message_s;
        }
}

/// Where pairs and trees find some of their partners at their own switch, or switches have unequal numbers of
/// nodes, the formulas may take too much, but not too little.
TEST(SimulateMessages, NeverPromisesMoreOfOversubscribedSwitches) {
  for (const auto algorithm : {Algorithm::ring, Algorithm::halving_doubling, Algorithm::tree})
    for (const int in_node : {1, 4})
      for (const int workers : kWorkers)
        for (const double bytes : {1e5, 3e6}) {
          auto cluster = round_cluster(in_node, algorithm);
          cluster.network.nodes_per_switch = 4;
          cluster.network.oversubscription = Range::of(3);
          const auto error = deviation(cluster, workers, bytes);
          if (!error && algorithm == Algorithm::halving_doubling && !is_power_of_two(workers)) continue;
          ASSERT_TRUE(error) << name(algorithm) << " " << workers << " " << in_node;
          EXPECT_GE(*error, -0.05) << name(algorithm) << " " << workers << " " << in_node << " " << bytes;
        }
}

TEST(SimulateMessages, HasNoneWhereSwitchesOrMemoryAdd) {
  EXPECT_FALSE(simulated_all_reduce(round_cluster(8, Algorithm::in_switch), 8, 1e6));
  EXPECT_FALSE(simulated_all_reduce(round_cluster(8, Algorithm::shared_memory), 8, 1e6));
  EXPECT_FALSE(simulated_all_reduce(round_cluster(8, Algorithm::ring), 1, 1e6));
}

}  // namespace
}  // namespace paceline::analysis
