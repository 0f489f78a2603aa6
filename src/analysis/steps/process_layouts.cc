#include "analysis/steps/process_layouts.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <tuple>

#include "analysis/compare/comparability.h"
#include "analysis/compare/setup.h"
#include "analysis/steps/breakdown.h"

namespace paceline::analysis {
namespace {

bool is_candidate(const Cell& cell) {
  return cell.is_measured() && !cell.oversubscribed && cell.kind != "converge" &&
         !is_of_cuda_engine(cell.record());
}

SameCores pair_of(const Cell& threads, const Cell& workers) {
  SameCores pair{.threads = &threads, .workers = &workers, .cores = cores_used(threads.record())};
  pair.speed = ratio(workers.images_per_s, threads.images_per_s);
  const Parts a = breakdown(threads).mean, b = breakdown(workers).mean;
  pair.compute_s = b.compute() - a.compute();
  pair.exposed_transfer_s = b.exposed_transfer - a.exposed_transfer;
  pair.waiting_s = b.exposed_wait - a.exposed_wait;
  pair.data_wait_s = b.data_wait - a.data_wait;
  pair.rest_s = b.copy + b.other - a.copy - a.other;
  return pair;
}

/// How the workers are joined and what they train; configurations that differ in this get separate rows.
std::string joined_in(const Cell& cell) {
  std::string text;
  for (const SetupEntry& entry : cell.setup)
    if (entry.kind == SetupKind::joined || entry.kind == SetupKind::subject) text += entry.text + "|";
  return text;
}

using measure::Record;

bool is_of_the_way(const SetupEntry& entry) {
  if (entry.kind == SetupKind::setting) return is_setting_of_joining(entry.name);
  return entry.kind == SetupKind::joined;
}

/// Whether the entry follows from the settings and from how workers are distributed: the cores on which they
/// run, which of them load data (with data-parallel, worker 0 for all), and the contents of the gradient.
bool follows_from_the_way(const SetupEntry& entry) {
  return (entry.kind == SetupKind::cores && entry.name != "threads") || entry.name == "gradient bytes";
}

/// The part of the set-up that must agree for two cells to be the same training done in two ways.
Setup training_of(const Cell& cell) {
  return some_of(cell.setup, [](const SetupEntry& entry) {
    return !is_of_the_way(entry) && !follows_from_the_way(entry);
  });
}

/// Adds to equal names what tells their set-ups apart.
void tell_names_apart(std::vector<std::string>& names, const std::vector<Setup>& setups) {
  std::vector<const Setup*> pointers;
  for (const Setup& setup : setups) pointers.push_back(&setup);
  const auto texts = differences_within(names, pointers, first_differences);
  for (std::size_t i = 0; i < names.size(); ++i)
    if (!texts[i].empty()) names[i] += ", " + texts[i];
}

std::vector<std::string> layout_names(const std::vector<const Cell*>& cells) {
  std::vector<std::string> names;
  std::vector<Setup> setups;
  for (const Cell* cell : cells) {
    names.push_back(joined_as(cell->record()));
    setups.push_back(some_of(cell->setup, is_of_the_way));
  }
  tell_names_apart(names, setups);
  return names;
}

ProcessLayout make_way(const std::string& name, const Cell& cell) {
  ProcessLayout way{.name = name, .cell = &cell};
  double count = 0, sent = 0, received = 0, sent_by_all = 0;
  bool knows_received = true, knows_all = true, knows_peak = true;
  for (const Record* record : cell.records) {
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
    // Old records, in which ranks do not name their process, hold the memory of the first process only.
    if (record->communication.processes.value_or(1) != static_cast<std::int64_t>(peaks.size()))
      knows_peak = false;
    for (const auto& [process, bytes] : peaks) {
      knows_peak = knows_peak && bytes.has_value();
      peak += bytes.value_or(0);
    }
    way.peak_bytes = std::max(way.peak_bytes.value_or(0), peak);
  }
  if (count > 0) way.sent = sent / count;
  if (count > 0 && knows_received) way.received = received / count;
  if (count > 0 && knows_all) way.sent_by_all = sent_by_all / count;
  if (!knows_peak) way.peak_bytes.reset();
  return way;
}

void find_fastest(TrainingLayouts& one) {
  const auto step = [&](std::size_t i) { return one.layouts[i].cell->step_s; };
  for (std::size_t i = 0; i < one.layouts.size(); ++i)
    if (step(i).median < step(one.fastest).median) one.fastest = i;
  for (std::size_t i = 0; i < one.layouts.size(); ++i)
    one.layouts[i].longer = i == one.fastest ? exactly(1) : ratio(step(i), step(one.fastest));
}

}  // namespace

std::vector<SameCores> same_cores(std::span<const Cell> cells) {
  using Key = std::tuple<std::int64_t, int, int, int, std::string, std::string>;
  std::map<Key, SameCores> found;
  for (const Cell& threads : cells) {
    if (!is_candidate(threads)) continue;
    for (const Cell& workers : cells) {
      if (!is_candidate(workers) || workers.workers <= threads.workers) continue;
      if (workers.global_batch != threads.global_batch) continue;
      if (workers.threads_per_worker >= threads.threads_per_worker) continue;
      if (cores_used(workers.record()) != cores_used(threads.record())) continue;
      const Verdict verdict = compare(threads.record(), workers.record(), Topic::same_cores);
      if (!verdict.comparable()) continue;
      SameCores pair = pair_of(threads, workers);
      pair.remarks = verdict.remarks;
      const Key key{threads.global_batch, pair.cores,         threads.workers,
                    workers.workers,      joined_in(threads), joined_in(workers)};
      const auto repeats = [](const SameCores& one) {
        return one.threads->records.size() + one.workers->records.size();
      };
      const auto is_better = [&](const SameCores& a, const SameCores& b) {
        return a.remarks.size() != b.remarks.size() ? a.remarks.size() < b.remarks.size()
                                                    : repeats(a) > repeats(b);
      };
      const auto [at, fresh] = found.emplace(key, pair);
      if (!fresh && is_better(pair, at->second)) at->second = pair;
    }
  }
  std::vector<SameCores> result;
  for (const auto& [key, pair] : found) result.push_back(pair);
  return result;
}

std::vector<TrainingLayouts> process_layouts(std::span<const Cell> cells) {
  std::vector<Setup> trainings;
  std::vector<std::vector<const Cell*>> members;
  for (const Cell& cell : cells) {
    if (!cell.is_measured() || cell.workers < 2) continue;
    const auto own = training_of(cell);
    const auto at = static_cast<std::size_t>(std::ranges::find(trainings, own) - trainings.begin());
    if (at == trainings.size()) {
      trainings.push_back(own);
      members.emplace_back();
    }
    members[at].push_back(&cell);
  }
  std::vector<TrainingLayouts> result;
  std::vector<std::string> labels;
  std::vector<Setup> compared;
  for (std::size_t i = 0; i < members.size(); ++i) {
    if (members[i].size() < 2) continue;
    const Cell& first = *members[i].front();
    labels.push_back(fmt::format("b {}, N {}", first.local_batch, first.workers));
    compared.push_back(trainings[i]);
    const auto names = layout_names(members[i]);
    auto& one = result.emplace_back();
    for (std::size_t k = 0; k < names.size(); ++k) one.layouts.push_back(make_way(names[k], *members[i][k]));
    find_fastest(one);
  }
  tell_names_apart(labels, compared);
  for (std::size_t i = 0; i < result.size(); ++i) result[i].label = labels[i];
  return result;
}

}  // namespace paceline::analysis
