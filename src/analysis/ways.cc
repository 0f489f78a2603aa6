#include "analysis/ways.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "analysis/record_times.h"
#include "measure/setting.h"

namespace paceline::analysis {
namespace {

using measure::Record;

/// Settings that say how workers are joined, or how long was measured.
constexpr std::array<std::string_view, 3> kOfTheWay{"parallel", "placement", "shared-memory"};

int nodes_of(const Record& record) {
  if (record.communication.nodes) return static_cast<int>(*record.communication.nodes);
  std::set<std::string> hosts;
  for (const auto& rank : record.ranks) hosts.insert(rank.host.value_or(""));
  return std::max(1, static_cast<int>(hosts.size()));
}

std::string s(int count) { return count == 1 ? "" : "s"; }

/// What must agree for two records to be one training in two ways.
std::string training_of(const Record& record) {
  std::string key = fmt::format("{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}|{}", record.kind, record.scaling,
                                record.variant, record.model.name, record.model.parameters, record.data.name,
                                record.workers, record.threads_per_worker, record.local_batch,
                                record.precision, record.device, record.environment.cpu);
  for (const auto& [name, value] : record.settings)
    if (std::ranges::find(kOfTheWay, name) == kOfTheWay.end() && !measure::is_of_window(name))
      key += "|" + name + "=" + value;
  return key;
}

Way make_way(const std::string& name, const std::vector<const Record*>& records) {
  Way way{.name = name, .records = records};
  std::vector<std::vector<double>> steps;
  double count = 0, sent = 0, received = 0, sent_by_all = 0;
  bool knows_received = true, knows_all = true, knows_peak = true;
  for (const Record* record : records) {
    steps.push_back(step_seconds(*record));
    count += static_cast<double>(record->window.steps);
    sent += static_cast<double>(record->communication.bytes_sent);
    knows_received = knows_received && record->communication.bytes_received.has_value();
    received += static_cast<double>(record->communication.bytes_received.value_or(0));
    std::map<int, std::optional<std::int64_t>> peaks;
    for (const auto& rank : record->ranks) {
      knows_all = knows_all && rank.bytes_sent.has_value();
      sent_by_all += static_cast<double>(rank.bytes_sent.value_or(0));
      peaks[rank.process.value_or(0)] = rank.process ? rank.peak_bytes : record->memory.peak_bytes;
    }
    std::int64_t peak = 0;
    // A record of before ranks named their processes holds the memory of the first process only.
    if (record->communication.processes.value_or(1) != static_cast<std::int64_t>(peaks.size()))
      knows_peak = false;
    for (const auto& [process, bytes] : peaks) {
      knows_peak = knows_peak && bytes.has_value();
      peak += bytes.value_or(0);
    }
    way.peak_bytes = std::max(way.peak_bytes.value_or(0), peak);
  }
  way.step_s = pooled(steps);
  way.images_per_s = over(static_cast<double>(records.front()->global_batch), way.step_s);
  if (count > 0) way.sent = sent / count;
  if (count > 0 && knows_received) way.received = received / count;
  if (count > 0 && knows_all) way.sent_by_all = sent_by_all / count;
  if (!knows_peak) way.peak_bytes.reset();
  return way;
}

void find_fastest(WaysOfOne& one) {
  for (std::size_t i = 0; i < one.ways.size(); ++i)
    if (one.ways[i].step_s.median < one.ways[one.fastest].step_s.median) one.fastest = i;
  for (std::size_t i = 0; i < one.ways.size(); ++i)
    one.ways[i].longer =
        i == one.fastest ? exactly(1) : ratio(one.ways[i].step_s, one.ways[one.fastest].step_s);
}

}  // namespace

std::string way_of(const Record& record) {
  const int processes = static_cast<int>(record.communication.processes.value_or(1));
  std::string name;
  if (processes <= 1) {
    name = "threads of one process";
  } else {
    const int nodes = nodes_of(record);
    name = fmt::format("{} process{} of {}", processes, processes == 1 ? "" : "es",
                       nodes == 1 ? "one node" : fmt::format("{} node{}", nodes, s(nodes)));
    if (const int each = record.workers / processes; each > 1) name += fmt::format(", {} threads each", each);
    if (nodes == 1 && record.communication.algorithm.find("messages") != std::string::npos)
      name += ", by messages";
  }
  return record.communication.parallel ? name + ", " + *record.communication.parallel : name;
}

std::vector<WaysOfOne> ways(std::span<const Cell> cells) {
  struct Training {
    std::string label;
    std::vector<std::string> order;
    std::map<std::string, std::vector<const Record*>> records;
  };
  std::vector<std::string> order;
  std::map<std::string, Training> trainings;
  for (const auto& cell : cells) {
    if (!cell.is_measured() || cell.workers < 2) continue;
    for (const Record* record : cell.records) {
      if (record->ranks.empty() || record->window.steps <= 0) continue;
      const auto key = training_of(*record);
      if (!trainings.contains(key)) order.push_back(key);
      auto& training = trainings[key];
      if (training.label.empty())
        training.label = fmt::format("b {}, N {}", record->local_batch, record->workers);
      const auto way = way_of(*record);
      if (!training.records.contains(way)) training.order.push_back(way);
      training.records[way].push_back(record);
    }
  }
  std::vector<WaysOfOne> result;
  for (const auto& key : order) {
    const auto& training = trainings[key];
    if (training.records.size() < 2) continue;
    WaysOfOne one{.label = training.label, .ways = {}};
    for (const auto& name : training.order) one.ways.push_back(make_way(name, training.records.at(name)));
    find_fastest(one);
    result.push_back(std::move(one));
  }
  return result;
}

}  // namespace paceline::analysis
