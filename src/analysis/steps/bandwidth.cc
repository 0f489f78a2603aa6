#include "analysis/steps/bandwidth.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "analysis/compare/record_times.h"

namespace paceline::analysis {
namespace {

using measure::Record;

/// Transfer time of each step in one run, summed over its buckets. Buckets are sent one after the other, so
/// no time counts twice. For a record without buckets: the ranks' sums.
std::vector<double> transfer_of_steps(const Record& record) {
  std::vector<double> steps;
  for (const auto& bucket : record.buckets) {
    if (steps.empty()) steps.resize(bucket.transfer_s.size());
    steps.resize(std::min(steps.size(), bucket.transfer_s.size()));
    for (std::size_t i = 0; i < steps.size(); ++i) steps[i] += bucket.transfer_s[i];
  }
  if (!steps.empty()) return steps;
  double sum = 0;
  for (const auto& rank : record.ranks) sum += rank.transfer_s;
  if (sum <= 0 || record.window.steps <= 0) return {};
  return {sum / static_cast<double>(record.ranks.size()) / static_cast<double>(record.window.steps)};
}

}  // namespace

double ring_bytes(double bytes, int workers) { return 2.0 * (workers - 1) / workers * bytes; }

Estimate algbw_gb_per_s(double bytes, const Estimate& seconds) { return over(bytes / 1e9, seconds); }

Estimate busbw_gb_per_s(const Estimate& algbw, int workers) { return scaled(algbw, ring_bytes(1, workers)); }

std::optional<Bandwidth> bandwidth(const Cell& cell) {
  if (cell.workers < 2 || !cell.is_measured()) return std::nullopt;
  std::vector<std::vector<double>> transfer;
  std::vector<double> ceilings, sent;
  for (const Record* record : cell.records) {
    if (auto steps = transfer_of_steps(*record); !steps.empty()) transfer.push_back(std::move(steps));
    if (record->communication.memory_ceiling_gb_per_s)
      ceilings.push_back(*record->communication.memory_ceiling_gb_per_s);
    if (record->window.steps > 0)
      sent.push_back(static_cast<double>(record->communication.bytes_sent) /
                     static_cast<double>(record->window.steps));
  }
  const Record& first = cell.record();
  Bandwidth result;
  result.cell = &cell;
  result.algorithm = first.communication.algorithm;
  result.bytes_per_step =
      static_cast<double>(first.buckets.empty() ? first.communication.gradient_bytes : bucket_bytes(first));
  if (transfer.empty() || result.bytes_per_step <= 0) return std::nullopt;
  result.bytes_per_epoch = result.bytes_per_step * static_cast<double>(cell.steps_per_epoch);
  result.buckets = static_cast<std::int64_t>(first.buckets.size());
  for (const auto& bucket : first.buckets)
    result.largest_message = std::max(result.largest_message, static_cast<double>(bucket.bytes));
  result.sent_per_step = sent.empty() ? 0 : measure::estimate(sent).median;
  result.ring_per_step = ring_bytes(result.bytes_per_step, cell.workers);
  result.is_ring_traffic =
      std::abs(result.sent_per_step - result.ring_per_step) <= 0.01 * result.ring_per_step;
  result.transfer_s = pooled(transfer);
  if (result.transfer_s.median <= 0) return std::nullopt;
  result.algbw = algbw_gb_per_s(result.bytes_per_step, result.transfer_s);
  result.busbw = busbw_gb_per_s(result.algbw, cell.workers);
  if (!ceilings.empty()) {
    result.ceiling = measure::estimate(ceilings);
    // Ceilings vary between repeats as times do, so their interval is included. A single ceiling has none.
    if (result.ceiling->median > 0)
      result.utilisation = has_interval(*result.ceiling) ? ratio(result.busbw, *result.ceiling)
                                                         : scaled(result.busbw, 1 / result.ceiling->median);
  }
  return result;
}

}  // namespace paceline::analysis
