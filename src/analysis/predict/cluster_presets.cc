#include <algorithm>
#include <array>
#include <string>

#include "analysis/predict/cluster.h"
#include "base/text.h"

namespace paceline::analysis {
namespace {

/// A machine that one can rent or buy. Rates are specifications, one way.
struct Preset {
  const char* name;
  const char* source;
  int workers_per_node;
  double memory_gb;
  double node_gb_per_s;
  Range node_share;
  bool in_switch;
  int nics;
  double gbit_per_s;
  Range latency_us;  ///< of the network
};

// Shares are those that published measurements reached: 234 of 300 GB/s (a ring on 8 A100), 309 (in the
// switch) to 368 (a ring) of 450 GB/s on 8 H200, 12 of 12.5, 24 of 25 and 42.5 of 50 GB/s through a card.
// Latencies of a hop and of a launch are the constants of NCCL's tuner (graph/tuning.cc); those of Ethernet
// are assumed.
constexpr Range kA100{0.75, 0.82}, kH100{0.68, 0.82}, kCard{0.75, 0.96}, kNvlinkUs{0.6, 3.4};
constexpr Range kFabricUs{2.7, 14}, kTcpUs{15, 50}, kLaunchUs{6.6, 14};

constexpr std::array<Preset, 10> kPresets{{
    {"dgx-a100", "NVIDIA's data sheet of DGX A100 (prints 600 GB/s, both ways)", 8, 40, 300, kA100, false, 8,
     200, kFabricUs},
    {"dgx-h100", "NVIDIA's data sheet of DGX H100 (prints 900 GB/s, both ways)", 8, 80, 450, kH100, true, 8,
     400, kFabricUs},
    {"azure-nd-a100-v4", "Azure's page of the ND A100 v4 series", 8, 40, 300, kA100, false, 8, 200,
     kFabricUs},
    {"azure-nd-h100-v5", "Azure's page of the ND H100 v5 series", 8, 80, 450, kH100, true, 8, 400, kFabricUs},
    {"aws-p4d", "AWS's page of p4d.24xlarge (400 Gbit/s in all)", 8, 40, 300, kA100, false, 4, 100,
     kFabricUs},
    {"aws-p5", "AWS's page of p5.48xlarge (3,200 Gbit/s in all)", 8, 80, 450, kH100, true, 32, 100,
     kFabricUs},
    {"gcp-a3-high", "Google Cloud's page of a3-highgpu-8g", 8, 80, 450, kH100, true, 4, 200, kFabricUs},
    {"eth-10", "one 10 Gbit/s Ethernet card, TCP; latency assumed", 1, 0, 0, {}, false, 1, 10, kTcpUs},
    {"eth-25", "one 25 Gbit/s Ethernet card, TCP; latency assumed", 1, 0, 0, {}, false, 1, 25, kTcpUs},
    {"eth-100", "one 100 Gbit/s Ethernet card, TCP; latency assumed", 1, 0, 0, {}, false, 1, 100, kTcpUs},
}};
constexpr int kPresetNodes = 4096;

Cluster cluster_of(const Preset& preset) {
  Cluster cluster;
  cluster.name = preset.name;
  cluster.source = preset.source;
  cluster.nodes = kPresetNodes;
  cluster.workers_per_node = preset.workers_per_node;
  cluster.memory_bytes = preset.memory_gb * 1e9;
  if (preset.node_gb_per_s > 0) {
    cluster.node_link.bytes_per_s = preset.node_share.scaled(preset.node_gb_per_s * 1e9);
    cluster.node_link.latency_s = kNvlinkUs.scaled(1e-6);
    cluster.node_link.base_s = kLaunchUs.scaled(1e-6);
    cluster.node_link.in_switch = preset.in_switch;
    cluster.network.base_s = kLaunchUs.scaled(1e-6);
  }
  cluster.network.bytes_per_s = kCard.scaled(preset.gbit_per_s * 1e9 / 8);
  cluster.network.latency_s = preset.latency_us.scaled(1e-6);
  cluster.network.nics_per_node = preset.nics;
  return cluster;
}

}  // namespace

std::vector<std::string> preset_names() { return base::texts_of(kPresets, &Preset::name); }

std::optional<Cluster> find_preset(std::string_view name) {
  const auto found = std::ranges::find(kPresets, name, [](const Preset& row) { return row.name; });
  if (found == kPresets.end()) return std::nullopt;
  auto cluster = cluster_of(*found);
  cluster.preset = found->name;
  return cluster;
}

}  // namespace paceline::analysis
