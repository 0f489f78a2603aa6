#include <array>

#include "analysis/predict/cluster.h"
#include "base/error.h"
#include "base/file.h"

namespace paceline::analysis {
namespace {

constexpr double kMicrosecond = 1e-6;

Cluster ethernet(std::string name, double gbit_per_s) {
  Cluster cluster;
  cluster.name = std::move(name);
  cluster.source = "assumed: TCP over one Ethernet card";
  cluster.nodes = 4096;
  cluster.network.bytes_per_s = {0.75 * gbit_per_s / 8 * 1e9, 0.96 * gbit_per_s / 8 * 1e9};
  cluster.network.latency_s = {15 * kMicrosecond, 50 * kMicrosecond};
  return cluster;
}

}  // namespace

std::vector<std::string> preset_names() { return {"eth-10", "eth-25", "eth-100"}; }

Cluster read_cluster(const std::string& file_or_preset, MeasuredFiles* measured) {
  if (file_or_preset == "eth-10") return ethernet(file_or_preset, 10);
  if (file_or_preset == "eth-25") return ethernet(file_or_preset, 25);
  if (file_or_preset == "eth-100") return ethernet(file_or_preset, 100);
  return parse_cluster(base::read_file(file_or_preset), file_or_preset, measured);
}

Cluster parse_cluster(std::string_view, const std::string& where, MeasuredFiles*) {
  base::fail(base::ErrorKind::usage, "{}: cluster files are not read yet; name a preset", where);
}

}  // namespace paceline::analysis
