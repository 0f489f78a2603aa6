#include "analysis/predict/link_table.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "analysis/predict/collective_cost.h"
#include "base/error.h"
#include "measure/statistics.h"

namespace paceline::analysis {
namespace {

/// What alpha and 1/beta of a level are multiplied by in the formula, which is linear in both.
struct Coefficients {
  double hop = 0, byte = 0;
};

Coefficients coefficients(const Cluster& cluster, bool of_network, const TimedAllReduce& timed) {
  Cluster unit = cluster;
  unit.adds_bytes_per_s = {};
  if (unit.algorithm == Algorithm::automatic) {
    const bool adds = of_network ? unit.network.in_switch : unit.node_link.in_switch;
    unit.algorithm = adds ? Algorithm::in_switch : Algorithm::ring;
  }
  for (Link* link : unit.links())
    link->bytes_per_s = link->latency_s = link->base_s = link->message_s = link->total_bytes_per_s = {};
  Link& link = *unit.links()[of_network ? 1 : 0];
  link.latency_s = Range::of(1);
  const double hop = formula_cost(unit, timed.ranks, timed.bytes).latency_s;
  link.latency_s = {};
  link.bytes_per_s = Range::of(1);
  return {hop, formula_cost(unit, timed.ranks, timed.bytes).transfer_s};
}

/// Hop and byte rate that fit the times with the least squares of relative errors.
void fit(Cluster& cluster, bool of_network, std::span<const TimedAllReduce> timed) {
  Link& link = *cluster.links()[of_network ? 1 : 0];
  double hh = 0, hb = 0, bb = 0, ht = 0, bt = 0, shortest = timed.front().seconds;
  for (const auto& one : timed) shortest = std::min(shortest, one.seconds);
  if (link.base_s.middle() >= shortest) link.base_s = {};
  for (const auto& one : timed) {
    const double left = one.seconds - link.base_s.middle();
    const auto [hop, byte] = coefficients(cluster, of_network, one);
    const double h = hop / one.seconds, b = byte / one.seconds, t = left / one.seconds;
    hh += h * h;
    hb += h * b;
    bb += b * b;
    ht += h * t;
    bt += b * t;
  }
  const double determinant = hh * bb - hb * hb;
  double alpha = 0, per_byte = bb > 0 ? bt / bb : 0;
  if (determinant > 1e-9 * hh * bb) {
    alpha = (ht * bb - bt * hb) / determinant;
    per_byte = (bt * hh - ht * hb) / determinant;
    if (alpha < 0) alpha = 0, per_byte = bt / bb;
  }
  if (per_byte <= 0) return;  // times that do not grow with the size say nothing of the bandwidth
  link.latency_s = Range::of(alpha);
  link.bytes_per_s = Range::of(1 / per_byte);
  link.message_s = link.total_bytes_per_s = {};
}

double ring_seconds(double latency_s, double bytes_per_s, int ends, double bytes) {
  if (ends < 2) return 0;
  return 2.0 * (ends - 1) * (latency_s + (bytes_per_s > 0 ? bytes / ends / bytes_per_s : 0));
}

/// `ends`: workers, or nodes where the link is only between these.
double added_seconds(const AddedLink& link, int ends, double bytes) {
  double inside_s = 0;
  if (link.per_host > 0) {
    inside_s = ring_seconds(link.inside_latency_s.low, link.inside_bytes_per_s.low,
                            std::min(ends, link.per_host), bytes);
    ends = (ends + link.per_host - 1) / link.per_host;
  }
  const bool is_beyond = link.per_switch > 0 && ends > link.per_switch;
  return inside_s + ring_seconds(link.latency_s.low,
                                 link.bytes_per_s.low / (is_beyond ? link.oversubscription : 1), ends, bytes);
}

}  // namespace

LinkTable::LinkTable(const Cluster& reference, std::span<const TimedAllReduce> timed) {
  std::map<std::pair<int, double>, std::vector<double>> factors;
  for (const auto& one : timed)
    factors[{one.ranks, one.bytes}].push_back(
        std::log(one.seconds / formula_cost(reference, one.ranks, one.bytes).seconds));
  std::vector<double> all;
  for (const auto& [key, logs] : factors) {
    if (curves_.empty() || curves_.back().ranks != key.first) curves_.push_back({key.first, {}, {}});
    curves_.back().log_bytes.push_back(std::log(key.second));
    all.push_back(measure::quantile(logs, 0.5));
    curves_.back().log_factors.push_back(all.back());
  }
  base::expects(!curves_.empty(), "LinkTable: at least one time");
  spread_ = measure::standard_deviation(all);
}

double LinkTable::Curve::log_factor(double log_bytes_asked) const {
  const auto upper = std::ranges::upper_bound(log_bytes, log_bytes_asked);
  if (upper == log_bytes.end()) return log_factors.back();
  if (upper == log_bytes.begin()) return log_factors.front();
  const auto i = static_cast<std::size_t>(upper - log_bytes.begin());
  const double part = (log_bytes_asked - log_bytes[i - 1]) / (log_bytes[i] - log_bytes[i - 1]);
  return std::lerp(log_factors[i - 1], log_factors[i], part);
}

double LinkTable::measured_over_formula(int workers, double bytes) const {
  const double log_bytes = std::log(std::max(bytes, 1.0));
  const auto next = std::ranges::lower_bound(curves_, workers, {}, &Curve::ranks);
  if (next == curves_.end()) return std::exp(curves_.back().log_factor(log_bytes));
  if (next->ranks == workers || next == curves_.begin()) return std::exp(next->log_factor(log_bytes));
  const auto& before = *(next - 1);
  const double part = std::log(static_cast<double>(workers) / before.ranks) /
                      std::log(static_cast<double>(next->ranks) / before.ranks);
  return std::exp(std::lerp(before.log_factor(log_bytes), next->log_factor(log_bytes), part));
}

bool LinkTable::has(int workers) const {
  return std::ranges::binary_search(curves_, workers, {}, &Curve::ranks);
}

AllReduceCost all_reduce_cost(const Cluster& cluster, int workers, double bytes) {
  AllReduceCost cost = formula_cost(cluster, workers, bytes);
  const int nodes = cluster.nodes_of(workers);
  const Link& link = cluster.link_of(workers);
  if (workers > 1 && link.measured != nullptr) {
    double factor = link.measured->measured_over_formula(workers, bytes);
    if (!link.measured->has(workers)) factor *= link.other_ranks_factor;
    cost.latency_s *= factor;
    cost.transfer_s *= factor;
  }
  if (cluster.emulated)
    cost.emulated_s =
        added_seconds(*cluster.emulated, cluster.emulated->between_nodes ? nodes : workers, bytes);
  cost.seconds = cost.latency_s + cost.transfer_s + cost.emulated_s;
  return cost;
}

void attach(Cluster& cluster, std::span<const TimedAllReduce> timed) {
  std::vector<TimedAllReduce> in_node, between;
  for (const auto& one : timed) {
    if (!(one.ranks >= 2 && one.bytes > 0 && one.seconds > 0 && std::isfinite(one.bytes) &&
          std::isfinite(one.seconds)))
      base::fail(
          base::ErrorKind::usage,
          "{}: a timed all-reduce needs at least 2 ranks, bytes and seconds above 0, but has {} ranks, {} "
          "bytes and {} s; leave it out",
          cluster.name, one.ranks, one.bytes, one.seconds);
    (one.ranks <= cluster.workers_per_node ? in_node : between).push_back(one);
  }
  for (const bool of_network : {false, true}) {
    const auto& some = of_network ? between : in_node;
    if (some.empty()) continue;
    Cluster reference = middle(cluster);
    for (const auto& one : some) reference.nodes = std::max(reference.nodes, reference.nodes_of(one.ranks));
    reference.node_link.measured = reference.network.measured = nullptr;
    reference.emulated.reset();
    fit(reference, of_network, some);
    Link& link = *cluster.links()[of_network ? 1 : 0];
    const Link& fitted = *reference.links()[of_network ? 1 : 0];
    if (!fitted.exists())
      base::fail(
          base::ErrorKind::usage,
          "{}: the timed all-reduces do not take longer for more bytes, so they show no bandwidth; time "
          "larger ones, or give GB_per_s",
          cluster.name);
    link = fitted;
    link.measured = std::make_shared<const LinkTable>(reference, some);
    link.measured_spread = link.measured->spread();
  }
}

}  // namespace paceline::analysis
