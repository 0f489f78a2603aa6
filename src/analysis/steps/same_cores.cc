#include "analysis/steps/same_cores.h"

#include <algorithm>
#include <map>
#include <tuple>

#include "analysis/compare/comparability.h"
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

}  // namespace paceline::analysis
