/// The cluster that records show of themselves, and what --what-if changes in one.

#include <initializer_list>

#include "analysis/predict/forecast.h"
#include "base/error.h"
#include "base/text.h"

namespace paceline::analysis {
namespace {

constexpr int kMostWorkers = 1 << 20;

}  // namespace

Cluster changed(Cluster cluster, const WhatIf& what_if) {
  const auto scale = [](std::initializer_list<Range*> ranges, double by) {
    for (Range* range : ranges) *range = range->scaled(by);
  };
  for (Link* link : cluster.links()) {
    scale({&link->bytes_per_s, &link->total_bytes_per_s}, what_if.bandwidth);
    scale({&link->latency_s, &link->base_s, &link->message_s}, what_if.latency);
  }
  if (cluster.emulated) {
    auto& link = *cluster.emulated;
    scale({&link.bytes_per_s, &link.inside_bytes_per_s}, what_if.bandwidth);
    scale({&link.latency_s, &link.inside_latency_s}, what_if.latency);
  }
  return cluster;
}

Cluster measured_cluster(const StepModel& model, const std::optional<AddedLink>& emulated) {
  Cluster cluster{.name = "as measured", .source = "the records"};
  const bool is_one_node = model.is_ghost || (emulated && !emulated->between_nodes);
  cluster.workers_per_node = is_one_node ? kMostWorkers : model.width;
  cluster.nodes = is_one_node ? 1 : (kMostWorkers + model.width - 1) / model.width;
  cluster.algorithm = model.algorithm;
  std::vector<TimedAllReduce> timed;
  std::vector<TimedMessage> transfers;
  TimedMessage sum;
  const int ranks = model.most();
  Cluster added_alone = cluster;
  added_alone.emulated = emulated;
  for (const auto& bucket : model.buckets) {
    // The sums of ghosts are hidden in the time of their emulated link (comm/emulate.h).
    if (!bucket.transfer_s || ranks < 2 || (model.is_ghost && emulated)) continue;
    const double seconds = *bucket.transfer_s - all_reduce_cost(added_alone, ranks, bucket.bytes).emulated_s;
    constexpr double kShortest = 1e-9;  // a difference of equal times
    if (seconds <= kShortest) continue;
    timed.push_back({.ranks = ranks, .bytes = bucket.bytes, .seconds = seconds});
    transfers.push_back({.bytes = bucket.bytes, .seconds = seconds});
    sum.bytes += bucket.bytes;
    sum.seconds += seconds;
  }
  // Buckets of similar sizes, or whose times do not grow with them, show one rate and no latency.
  const auto line = fit_buckets(transfers);
  if (!timed.empty() && (!line || line->seconds_per_byte <= 0))
    timed = {{.ranks = ranks, .bytes = sum.bytes, .seconds = sum.seconds}};
  if (!timed.empty()) attach(cluster, timed);
  // What is joined by an emulated link is summed on one host: all share its cores.
  if (is_one_node && cluster.node_link.exists())
    cluster.node_link.total_bytes_per_s = Range::of(ranks * cluster.node_link.bytes_per_s.middle());
  cluster.emulated = emulated;
  return cluster;
}

std::set<std::int64_t> half_octaves(std::int64_t low, std::int64_t high) {
  std::set<std::int64_t> grid;
  for (std::int64_t power = 1; power <= high; power *= 2)
    for (const std::int64_t one : {power, power + power / 2})
      if (one >= low && one <= high) grid.insert(one);
  return grid;
}

std::vector<std::int64_t> worker_grid(std::int64_t low, std::int64_t high) {
  auto grid = half_octaves(low, high);
  grid.insert({low, high});
  return {grid.begin(), grid.end()};
}

ParsedWhatIf parse_what_if(std::string_view text) {
  constexpr std::string_view kExample = "bandwidth=2x,latency=0.5x,loader=2x,compute=1.5x,batch=64";
  ParsedWhatIf parsed;
  for (const auto& part : base::parts(text)) {
    const auto equals = part.find('=');
    const auto key = part.substr(0, equals);
    auto value = equals == std::string::npos ? std::string() : part.substr(equals + 1);
    if (key == "batch") {
      parsed.batch = static_cast<double>(base::whole_number_in(text, "batch", value, 1, 1 << 30));
      continue;
    }
    const bool is_factor = value.ends_with('x');
    if (is_factor) value.pop_back();
    const double factor = base::to_number<double>(value).value_or(0);
    auto* to = key == "bandwidth" ? &parsed.what_if.bandwidth
               : key == "latency" ? &parsed.what_if.latency
               : key == "loader"  ? &parsed.what_if.loader
               : key == "compute" ? &parsed.what_if.compute
                                  : nullptr;
    if (to == nullptr || !is_factor || !(factor > 0 && factor <= 1e6))
      base::fail(base::ErrorKind::usage, "must be written as {}, with factors above 0, got '{}'", kExample,
                 part);
    *to = factor;
  }
  return parsed;
}

}  // namespace paceline::analysis
