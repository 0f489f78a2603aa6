#include "analysis/steps/by_worker.h"

#include <algorithm>
#include <cmath>

#include "measure/statistics.h"

namespace paceline::analysis {
namespace {

using measure::Phase;
using measure::RankRecord;
using measure::Record;

/// Records that have a window and all ranks, so that each worker's ledger is known.
std::vector<const Record*> whole_records(const Cell& cell) {
  std::vector<const Record*> whole;
  for (const Record* record : cell.records)
    if (record->window.steps > 0 && static_cast<int>(record->ranks.size()) == cell.workers)
      whole.push_back(record);
  return whole;
}

void add_time(WorkerShare& worker, const RankRecord& rank, double steps) {
  const auto of = [&](Phase phase) { return seconds_in(rank, phase) / steps; };
  worker.compute_s += of(Phase::forward) + of(Phase::backward) + of(Phase::update);
  worker.data_wait_s += of(Phase::data_wait);
  worker.rest_s += of(Phase::copy) + of(Phase::other);
  worker.transfer_s += of(Phase::exposed_transfer);
  worker.waiting_s += of(Phase::exposed_wait);
}

/// Seconds per step of the worker's own work in one repeat.
double own_seconds(const Record& record, std::size_t worker) {
  WorkerShare share;
  add_time(share, record.ranks[worker], static_cast<double>(record.window.steps));
  return share.own_s();
}

/// How far the slowest worker is behind the next: the difference of their own times in each repeat; its mean
/// and interval.
Estimate lead_of(const std::vector<const Record*>& records, std::size_t slowest, std::size_t next) {
  std::vector<double> leads;
  for (const Record* record : records)
    leads.push_back(own_seconds(*record, slowest) - own_seconds(*record, next));
  const double mean = measure::mean(leads);
  const auto n = static_cast<double>(leads.size());
  const double half = leads.size() < 2 ? 0
                                       : measure::as_rare_as_two_errors(n - 1) *
                                             measure::standard_deviation(leads) / std::sqrt(n);
  return {.median = mean, .low = mean - half, .high = mean + half, .n = static_cast<int>(leads.size())};
}

/// Adds one repeat to `sum`. If any repeat does not know the value, the sum is unknown.
void add_known(std::optional<double>& sum, const std::optional<std::int64_t>& more, double steps) {
  if (!more || !sum)
    sum.reset();
  else
    *sum += static_cast<double>(*more) / steps;
}

/// Peak memory of the rank's process. With one process it is the record's. Old records of several processes
/// hold only the first process's, so there it is unknown.
std::optional<std::int64_t> peak_of(const Record& record, const RankRecord& rank) {
  if (rank.process) return rank.peak_bytes;
  return record.communication.processes.value_or(1) > 1 ? std::nullopt : record.memory.peak_bytes;
}

}  // namespace

std::optional<ByWorker> by_worker(const Cell& cell) {
  const auto records = whole_records(cell);
  if (!cell.is_measured() || cell.workers < 2 || records.empty()) return std::nullopt;
  double steps = 0;
  for (const Record* record : records) steps += static_cast<double>(record->window.steps);
  ByWorker result{.cell = &cell, .workers = {}};
  double sum = 0;
  for (std::size_t i = 0; i < static_cast<std::size_t>(cell.workers); ++i) {
    const RankRecord& first = records.front()->ranks[i];
    WorkerShare worker{.rank = first.rank,
                       .process = first.process.value_or(0),
                       .host = first.host.value_or(""),
                       .bytes_sent = 0,
                       .bytes_received = 0};
    for (const Record* record : records) {
      const RankRecord& rank = record->ranks[i];
      add_time(worker, rank, steps);
      add_known(worker.bytes_sent, rank.bytes_sent, steps);
      add_known(worker.bytes_received, rank.bytes_received, steps);
      if (const auto peak = peak_of(*record, rank))
        worker.peak_bytes = std::max(worker.peak_bytes.value_or(0), *peak);
    }
    sum += worker.own_s();
    result.workers.push_back(std::move(worker));
    if (result.workers.back().own_s() > result.workers[result.slowest].own_s()) result.slowest = i;
  }
  result.next = result.slowest == 0 ? 1 : 0;
  for (std::size_t i = 0; i < result.workers.size(); ++i)
    if (i != result.slowest && result.workers[i].own_s() > result.workers[result.next].own_s())
      result.next = i;
  result.lead_s = lead_of(records, result.slowest, result.next);
  const double mean = sum / static_cast<double>(cell.workers);
  if (mean > 0) result.imbalance = result.workers[result.slowest].own_s() / mean - 1;
  for (const Record* record : records) {
    std::vector<double> own;
    for (std::size_t i = 0; i < result.workers.size(); ++i) own.push_back(own_seconds(*record, i));
    if (const double of_all = measure::mean(own); of_all > 0)
      result.imbalance_of_a_repeat +=
          (std::ranges::max(own) / of_all - 1) / static_cast<double>(records.size());
  }
  return result;
}

bool takes_turns(const ByWorker& workers) {
  return workers.imbalance < kBalanced && workers.imbalance_of_a_repeat >= kBalanced;
}

}  // namespace paceline::analysis
