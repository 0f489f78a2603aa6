#include "analysis/predict/link_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "analysis/predict/clusters.h"
#include "analysis/predict/collective_cost.h"
#include "base/error.h"
#include "measure/statistics.h"

namespace paceline::analysis {
namespace {

std::vector<TimedAllReduce> timed_by(const Cluster& cluster, int ranks, std::vector<double> sizes) {
  std::vector<TimedAllReduce> timed;
  for (const double bytes : sizes)
    timed.push_back({ranks, bytes, all_reduce_cost(cluster, ranks, bytes).seconds});
  return timed;
}

TEST(LinkTable, GivesBackWhatWasTimed) {
  auto cluster = round_cluster(8, Algorithm::automatic);
  const std::vector<TimedAllReduce> timed{{8, 1e4, 20e-6}, {8, 1e6, 50e-6}, {8, 1e8, 1e-3}};
  attach(cluster, timed);
  for (const auto& one : timed)
    EXPECT_NEAR(all_reduce_cost(cluster, 8, one.bytes).seconds, one.seconds, 1e-9 * one.seconds);
  // Half way between two sizes the factor on the formula is the middle one, in logarithms.
  const auto factor = [&](double bytes) {
    return all_reduce_cost(cluster, 8, bytes).seconds / formula_cost(middle(cluster), 8, bytes).seconds;
  };
  EXPECT_NEAR(factor(1e5), std::sqrt(factor(1e4) * factor(1e6)), 1e-9);
  EXPECT_NEAR(factor(1e9), factor(1e8), 1e-9);  // beyond
  EXPECT_NEAR(factor(1e3), factor(1e4), 1e-9);
  EXPECT_TRUE(cluster.node_link.measured->has(8));
  EXPECT_FALSE(cluster.node_link.measured->has(4));
}

TEST(LinkTable, FindsTheLinkThatMadeTheTimes) {
  for (const auto algorithm :
       {Algorithm::ring, Algorithm::halving_doubling, Algorithm::shared_memory, Algorithm::in_switch}) {
    auto truth = round_cluster(8, algorithm);
    truth.node_link.in_switch = algorithm == Algorithm::in_switch;
    auto cluster = truth;
    cluster.node_link.bytes_per_s = cluster.node_link.latency_s = {};
    attach(cluster, timed_by(truth, 4, {1e4, 1e5, 1e6, 1e8}));
    EXPECT_NEAR(cluster.node_link.bytes_per_s.low, 200e9, 1) << name(algorithm);
    EXPECT_NEAR(cluster.node_link.latency_s.low, 2e-6, 1e-12);
    EXPECT_NEAR(cluster.node_link.measured_spread, 0, 1e-9);
    for (const int ranks : {2, 8})
      EXPECT_NEAR(all_reduce_cost(cluster, ranks, 3e6).seconds, all_reduce_cost(truth, ranks, 3e6).seconds,
                  1e-12)
          << name(algorithm) << " " << ranks;
  }
}

TEST(LinkTable, FindsTheNetworkOfTheExchange) {
  const auto truth = round_cluster(1, Algorithm::exchange);
  auto cluster = truth;
  cluster.network.bytes_per_s = cluster.network.latency_s = {};
  attach(cluster, timed_by(truth, 2, {4096, 65536, 4e6, 16e6}));
  EXPECT_NEAR(all_reduce_cost(cluster, 16, 10e6).seconds, all_reduce_cost(truth, 16, 10e6).seconds, 1e-9);
  EXPECT_EQ(cluster.node_link.measured, nullptr);
}

TEST(LinkTable, CarriesTheSpreadToOtherRanks) {
  auto cluster = round_cluster(8, Algorithm::ring);
  auto timed = timed_by(cluster, 4, {1e4, 1e5, 1e6, 1e7, 1e8});
  for (std::size_t i = 0; i < timed.size(); ++i) timed[i].seconds *= i % 2 == 0 ? 1.2 : 1 / 1.2;
  attach(cluster, timed);
  EXPECT_GT(cluster.node_link.measured_spread, 0.1);
  base::Rng random(1, base::Purpose::test);
  std::vector<double> others;
  for (int i = 0; i < 400; ++i) {
    const auto drawn = draw(cluster, random);
    EXPECT_NEAR(all_reduce_cost(drawn, 4, 1e6).seconds, timed[2].seconds, 1e-12);
    others.push_back(std::log(all_reduce_cost(drawn, 8, 1e6).seconds));
  }
  EXPECT_NEAR(measure::standard_deviation(others), cluster.node_link.measured_spread,
              0.15 * cluster.node_link.measured_spread);
}

TEST(LinkTable, FollowsALinkThatIsMadeFaster) {
  auto cluster = round_cluster(8, Algorithm::ring);
  attach(cluster, timed_by(cluster, 8, {1e4, 1e6, 1e8}));
  const double before = all_reduce_cost(cluster, 8, 1e8).transfer_s;
  cluster.node_link.bytes_per_s = Range::of(2 * cluster.node_link.bytes_per_s.low);
  EXPECT_NEAR(all_reduce_cost(cluster, 8, 1e8).transfer_s, before / 2, 1e-9);
}

TEST(LinkTable, RefusesWhatIsNoTime) {
  for (const TimedAllReduce& one : {TimedAllReduce{1, 1e6, 1e-3}, TimedAllReduce{8, 0, 1e-3},
                                    TimedAllReduce{8, 1e6, std::nan("")}, TimedAllReduce{8, 1e6, -1}}) {
    auto cluster = round_cluster(8, Algorithm::ring);
    EXPECT_THROW(attach(cluster, {&one, 1}), base::Error);
  }
  auto cluster = round_cluster(8, Algorithm::ring);
  cluster.node_link.bytes_per_s = {};
  const std::vector<TimedAllReduce> falling{{8, 1e4, 1e-3}, {8, 1e6, 1e-4}, {8, 1e7, 1e-5}};
  EXPECT_THROW(attach(cluster, falling), base::Error);
}

/// The median error of all sizes, each left out in turn.
double left_one_out(Cluster cluster, const std::vector<TimedAllReduce>& timed, const char* table) {
  std::vector<double> errors;
  for (std::size_t left = 0; left < timed.size(); ++left) {
    auto others = timed;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(left));
    auto known = cluster;
    attach(known, others);
    const auto& truth = timed[left];
    errors.push_back(std::abs(all_reduce_cost(known, truth.ranks, truth.bytes).seconds / truth.seconds - 1));
  }
  const double median = measure::quantile(errors, 0.5);
  std::printf("%s: median error %.1f %%, worst %.1f %% of %zu sizes left out in turn\n", table, 100 * median,
              100 * measure::quantile(errors, 1), errors.size());
  return median;
}

TEST(LinkTable, PredictsPublishedSizesLeftOut) {
  const char* given = std::getenv("PACELINE_DATA");
  const auto data =
      (given != nullptr ? std::filesystem::path(given)
                        : std::filesystem::path(PACELINE_SOURCE_DIR) / ".." / "shared" / "data") /
      "published";
  if (!std::filesystem::exists(data / "allreduce-8-gpus.csv"))
    GTEST_SKIP() << data << " has no published figures; set PACELINE_DATA to the data's directory";
  const auto read = [&](const char* file, bool is_busbw) {
    std::ifstream in(data / file);
    std::vector<TimedAllReduce> timed;
    for (std::string line; std::getline(in, line);) {
      if (line.empty() || std::isdigit(static_cast<unsigned char>(line[0])) == 0) continue;
      const double bytes = std::stod(line), figure = std::stod(line.substr(line.find(',') + 1));
      timed.push_back({8, bytes, is_busbw ? 1.75 * bytes / (figure * 1e9) : figure * 1e-6});
    }
    return timed;
  };
  auto a100 = find_preset("dgx-a100").value(), h100 = find_preset("dgx-h100").value();
  const auto eight = read("allreduce-8-gpus.csv", false), h200 = read("allreduce-8-h200.csv", true);
  ASSERT_EQ(eight.size(), 11u);
  ASSERT_EQ(h200.size(), 20u);
  EXPECT_LE(left_one_out(a100, eight, "8 GPUs"), 0.05);
  EXPECT_LE(left_one_out(h100, h200, "8 H200"), 0.05);
}

}  // namespace
}  // namespace paceline::analysis
