#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include "analysis/predict/cluster.h"
#include "analysis/predict/collective_cost.h"
#include "base/error.h"

namespace paceline::analysis {
namespace {

const std::string kHead = "schema = \"paceline-cluster-1\"\n";
const std::string kOwn = kHead + R"(
nodes = 8
workers_per_node = 8
memory_GB = 40
algorithm = "ring"
[worker]
speed = 1.5
spread = [0.0, 0.03]
[node.link]
kind = "switch"
GB_per_s = 300
share = [0.75, 0.82]
latency_us = [0.6, 3.4]
measured = "nccl8.json"
[network]
nics_per_node = 4
Gbit_per_s = 200
share = 0.9
latency_us = 5
base_us = 8.4
topology = "fat-tree"
nodes_per_switch = 4
oversubscription = [1, 2]
[storage]
shared_GB_per_s = 40
node_GB_per_s = 6
opens_per_s = 50000
[cost]
node_hour = 25.0
currency = "USD"
)";

TEST(ClusterFile, ReadsEveryKey) {
  MeasuredFiles files;
  const auto cluster = parse_cluster(kOwn, "own.toml", &files);
  EXPECT_EQ(cluster.name, "own.toml");
  EXPECT_EQ(cluster.slots(), 64);
  EXPECT_EQ(cluster.nodes_of(17), 3);
  EXPECT_EQ(cluster.algorithm, Algorithm::ring);
  EXPECT_DOUBLE_EQ(cluster.memory_bytes, 40e9);
  EXPECT_EQ(cluster.worker_speed, Range::of(1.5));
  EXPECT_EQ(cluster.worker_spread, (Range{0, 0.03}));
  EXPECT_DOUBLE_EQ(cluster.node_link.bytes_per_s.low, 225e9);
  EXPECT_DOUBLE_EQ(cluster.node_link.bytes_per_s.high, 246e9);
  EXPECT_DOUBLE_EQ(cluster.node_link.latency_s.high, 3.4e-6);
  EXPECT_EQ(cluster.network.nics_per_node, 4);
  EXPECT_DOUBLE_EQ(cluster.network.bytes_per_s.low, 22.5e9);
  EXPECT_DOUBLE_EQ(cluster.network.base_s.low, 8.4e-6);
  EXPECT_EQ(cluster.network.oversubscription, (Range{1, 2}));
  EXPECT_DOUBLE_EQ(cluster.storage->opens_per_s.low, 50000);
  EXPECT_EQ(cluster.cost->currency, "USD");
  EXPECT_EQ(files.node_link, "nccl8.json");
  EXPECT_FALSE(files.network);
}

TEST(ClusterFile, BeginsWithAPreset) {
  const auto cluster = parse_cluster(
      kHead + "preset = \"aws-p4d\"\nnodes = 4\n[cost]\nnode_hour = 20\ncurrency = \"USD\"\n", "a");
  EXPECT_EQ(cluster.nodes, 4);
  EXPECT_EQ(cluster.network.nics_per_node, 4);
  EXPECT_DOUBLE_EQ(cluster.cost->node_hour, 20);
  EXPECT_FALSE(cluster.source.empty());
}

std::string refusal(const std::string& text) {
  try {
    (void)parse_cluster(text, "c.toml");
  } catch (const base::Error& error) {
    EXPECT_EQ(error.kind(), base::ErrorKind::usage);
    return error.what();
  }
  return "accepted";
}

TEST(ClusterFile, RefusesTrapsByName) {
  const auto network = [](const std::string& line) { return kHead + "nodes = 4\n[network]\n" + line + "\n"; };
  const auto node = [](const std::string& line) {
    return kHead + "workers_per_node = 8\n[node.link]\n" + line + "\n";
  };
  const struct {
    std::string text, says;
  } cases[] = {
      {network("GB_per_s = 200"), "in Gbit/s; write Gbit_per_s = 200"},
      {network("GB_per_s = 25"), "in Gbit/s; write Gbit_per_s = 25"},
      {network("GB_per_s = [10, 12]"), "in Gbit/s; write Gbit_per_s = 10"},
      {network("Gbit_per_s = 12.5"), "in GB/s; write Gbit_per_s = 100"},
      {network("Gbit_per_s = 100\nGB_per_s = 12"), "both given"},
      {node("GB_per_s = 600"), "both ways together; write the 300 of one way"},
      {node("GB_per_s = 900"), "both ways together; write the 450 of one way"},
      {node("Gbit_per_s = 300"), "in GB/s; write GB_per_s = 300"},
      {node("GB_per_s = 2400"), "write Gbit_per_s = 2400"},
      {node("GB_per_s = 300\nshare = 1.2"), "at most 1"},
      {node("share = 0.8"), "share is a share of GB_per_s"},
      {node("GB_per_s = -300"), "above 0, but is -300"},
      {node("GB_per_s = 0"), "above 0, but is 0"},
      {node("GB_per_s = nan"), "but is nan"},
      {node("GB_per_s = inf"), "but is inf"},
      {node("GB_per_s = [300, 200]"), "from 300 down to 200; write [200, 300]"},
      {node("GB_per_s = [1, 2, 3]"), "a range [low, high]"},
      {node("GB_per_s = \"fast\""), "must be a number"},
      {node("GB_per_s = 300\nlatency_us = -1"), "at least 0, but is -1"},
      {node("GB_per_s = 300\nlatncy_us = 1"), "did you mean 'latency_us'"},
      {node("GB_per_s = 300\nkind = \"swich\""), "did you mean 'switch'"},
      {node("latency_us = 3"), "no measured file either"},
      {network("Gbit_per_s = 100\noversubscription = 2"), "add nodes_per_switch"},
      {network("Gbit_per_s = 100\nnodes_per_switch = 4\noversubscription = 0.5"), "at least 1"},
      {network("Gbit_per_s = 100\ntopology = \"torus\""), "known are fat-tree, one-switch"},
      {kHead + "nodes = 0\n", "from 1 to"},
      {kHead + "nodes = 2.5\n", "must be a whole number"},
      {kHead + "nodes = 2\n", "[network] is missing"},
      {kHead + "workers_per_node = 2\n", "[node.link] is missing"},
      {kHead + "nodse = 2\n", "did you mean 'nodes'"},
      {kHead + "algorithm = \"rign\"\n", "did you mean 'ring'"},
      {kHead + "preset = \"dgx-a10\"\n", "did you mean 'dgx-a100'"},
      {kHead + "[cost]\nnode_hour = 3\n", "currency"},
      {kHead + "[node]\nlnk = 1\n", "did you mean 'link'"},
      {kHead + "network = 3\n", "must be a table"},
      {"nodes = 2\n", "schema is missing"},
      {"schema = \"paceline-cluster-9\"\n", "must be \"paceline-cluster-1\""},
      {kHead + "nodes = = 2\n", "not TOML"},
  };
  for (const auto& one : cases) {
    const auto said = refusal(one.text);
    EXPECT_NE(said.find(one.says), std::string::npos) << one.text << "said: " << said;
    EXPECT_TRUE(said.starts_with("c.toml")) << said;
  }
}

TEST(ClusterFile, TakesWhatIsSaidOneWay) {
  const auto cluster = parse_cluster(
      kHead + "workers_per_node = 8\n[node.link]\nGB_per_s = 900\none_way = true\nshare = 1\n", "b200");
  EXPECT_DOUBLE_EQ(cluster.node_link.bytes_per_s.low, 900e9);
}

TEST(ClusterFile, NamesSlotsThatAreMissing) {
  const auto cluster = parse_cluster(kOwn, "own.toml");
  require_slots(cluster, 64);
  try {
    require_slots(cluster, 65);
    FAIL() << "65 workers have no 65th slot";
  } catch (const base::Error& error) {
    EXPECT_STREQ(
        error.what(),
        "own.toml: 65 workers need as many slots, but 8 nodes with 8 workers each have 64; raise nodes, "
        "or ask for fewer workers");
  }
}

TEST(ClusterFile, ReadsPresetsAndFilesByName) {
  for (const auto& name : preset_names()) {
    const auto cluster = read_cluster(name);
    EXPECT_EQ(cluster.name, name);
    EXPECT_FALSE(cluster.source.empty());
    EXPECT_GT(all_reduce_cost(middle(cluster), 64, 1e8).seconds, 0);
  }
  const auto path = std::filesystem::path(testing::TempDir()) / "cluster_file_test.toml";
  std::ofstream(path) << kOwn;
  EXPECT_EQ(read_cluster(path.string()).slots(), 64);
  std::filesystem::remove(path);
  try {
    (void)read_cluster("dgx-a101");
    FAIL();
  } catch (const base::Error& error) {
    EXPECT_NE(std::string(error.what()).find("did you mean 'dgx-a100'"), std::string::npos);
  }
}

/// A file with some keys, of which each is right three times of four.
std::string random_file(base::Rng& random) {
  const auto pick = [&](auto... texts) {
    const std::string all[] = {std::string(texts)...};
    return all[random.below(sizeof...(texts))];
  };
  const auto number = [&]() -> std::string {
    if (random.below(16) == 0) return pick("nan", "-1", "inf", "\"x\"", "[2, 1]", "[]", "1e300", "true");
    const double low = std::pow(10.0, 6 * random.uniform() - 3);
    return random.below(2) == 0 ? fmt::format("{}", low)
                                : fmt::format("[{}, {}]", low, low * (1 + random.uniform()));
  };
  const auto maybe = [&](const std::string& key, const std::string& value) {
    return random.below(4) == 0 ? std::string() : key + " = " + value + "\n";
  };
  const std::string part = random.below(8) == 0 ? number() : fmt::format("{}", 0.1 + 0.9 * random.uniform());
  std::string text = kHead;
  text += maybe("nodes", fmt::format("{}", 1 + random.below(100)));
  text += maybe("workers_per_node", fmt::format("{}", 1 + random.below(16)));
  text += maybe("algorithm", pick("\"auto\"", "\"ring\"", "\"tree\"", "\"hierarchical\"", "\"in-switch\"",
                                  "\"halving-doubling\"", "\"exchange\"", "\"shared-memory\""));
  text += "[worker]\n" + maybe("speed", number()) + maybe("adds_GB_per_s", number());
  text += "[node.link]\n" + maybe("GB_per_s", number()) + maybe("share", part) +
          maybe("latency_us", number()) + maybe("base_us", number()) + maybe("message_us", number()) +
          maybe("in_switch", pick("true", "false")) + maybe("total_GB_per_s", number());
  text += "[network]\n" + maybe("Gbit_per_s", number()) + maybe("share", part) +
          maybe("latency_us", number()) + maybe("nics_per_node", fmt::format("{}", 1 + random.below(8))) +
          maybe("nodes_per_switch", fmt::format("{}", 1 + random.below(32))) +
          maybe("oversubscription", fmt::format("{}", 1 + 7 * random.uniform())) +
          maybe("in_switch", pick("true", "false"));
  if (random.below(4) == 0)
    text += "[emulated]\n" + maybe("latency_us", number()) + maybe("GB_per_s", number());
  return text;
}

/// The busbw that no algorithm can pass: what a rank can send where there is one node, and what a node can,
/// each up to twice where the switch adds.
double most_busbw(const Cluster& cluster, int workers) {
  if (cluster.emulated && cluster.emulated->bytes_per_s.low > 0)
    return cluster.emulated->between_nodes ? HUGE_VAL : cluster.emulated->bytes_per_s.low;
  const double node = cluster.network.bytes_per_s.low * cluster.network.nics_per_node;
  const double rank = cluster.node_link.bytes_per_s.low;
  if (cluster.nodes_of(workers) > 1) return node > 0 ? 2 * node : HUGE_VAL;
  return rank > 0 ? 2 * rank : HUGE_VAL;
}

TEST(ClusterFile, Survives10000RandomFiles) {
  base::Rng random(53, base::Purpose::test);
  int accepted = 0;
  for (int i = 0; i < 10000; ++i) {
    const auto text = random_file(random);
    std::optional<Cluster> cluster;
    try {
      cluster = parse_cluster(text, "random.toml");
    } catch (const base::Error&) {
      continue;
    }
    ++accepted;
    const auto drawn = draw(*cluster, random);
    for (const int workers : {1, 2, 7, 64, 1000}) {
      if (workers > drawn.slots()) continue;
      for (const double bytes : {4.0, 1e6, 1e10}) {
        const auto cost = all_reduce_cost(drawn, workers, bytes);
        ASSERT_TRUE(std::isfinite(cost.seconds) && cost.latency_s >= 0 && cost.transfer_s >= 0 &&
                    cost.emulated_s >= 0)
            << text;
        if (workers == 1) continue;
        const double busbw = 2.0 * (workers - 1) / workers * bytes / cost.seconds;
        ASSERT_LE(busbw, most_busbw(drawn, workers) * (1 + 1e-9)) << text << workers << " " << bytes;
      }
    }
  }
  EXPECT_GT(accepted, 500);
}

}  // namespace
}  // namespace paceline::analysis
