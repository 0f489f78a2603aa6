#include "analysis/steps/bandwidth.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace paceline::analysis {

std::optional<LinkFit> fit_link(std::span<const TimedMessage> messages) {
  const auto takes_time = [](const TimedMessage& message) { return message.seconds > 0; };
  if (messages.size() < 3 || !std::ranges::all_of(messages, takes_time)) return std::nullopt;
  const auto line = line_of_times(messages);
  if (!line || !(line->seconds_per_byte > 0)) return std::nullopt;
  LinkFit fit{.alpha_s = line->alpha_s, .bytes_per_s = 1 / line->seconds_per_byte, .residual = 0};
  double squares = 0;
  for (const auto& message : messages) {
    const double error = fit.seconds(message.bytes) / message.seconds - 1;
    squares += error * error;
  }
  fit.residual = std::sqrt(squares / static_cast<double>(messages.size()));
  return fit;
}

double bus_factor(std::string_view collective, int ranks) {
  if (ranks < 2) return 0;
  if (collective == "broadcast") return 1;
  return (collective == "all_reduce" ? 2.0 : 1.0) * (ranks - 1) / ranks;
}

CollectiveFigures figures(const measure::CollectiveRecord& one, int ranks) {
  CollectiveFigures result{.seconds = measure::estimate(one.seconds), .algbw = {}, .busbw = {}};
  const auto& t = result.seconds;
  if (ranks < 2 || !(t.low > 0)) return result;
  const auto rates = [&](double bytes) {  // the shortest time is the highest rate
    return measure::Estimate{
        .median = bytes / t.median / 1e9, .low = bytes / t.high / 1e9, .high = bytes / t.low / 1e9, .n = t.n};
  };
  const auto bytes = static_cast<double>(one.bytes);
  result.algbw = rates(bytes);
  result.busbw = rates(bytes * bus_factor(one.collective, ranks));
  return result;
}

bool shows_bandwidth(const measure::LinkFitRecord& fit, const measure::Record& record) {
  if (record.workers < 2 || !(fit.bytes_per_s > 0) || !record.collectives) return false;
  std::int64_t largest = 0;
  for (const auto& one : *record.collectives)
    if (one.collective == fit.collective && one.in_place == fit.in_place)
      largest = std::max(largest, one.bytes);
  const double transfer = static_cast<double>(largest) / fit.bytes_per_s;
  return transfer >= 0.05 * (fit.alpha_s + transfer);
}

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

std::optional<Bandwidth> bandwidth(const Cell& cell) {
  if (cell.workers < 2 || !cell.is_measured()) return std::nullopt;
  std::vector<std::vector<double>> transfer;
  std::vector<double> ceilings, sent;
  for (const Record* record : cell.records) {
    if (auto steps = transfer_of_steps(*record); !steps.empty()) transfer.push_back(std::move(steps));
    if (record->communication.memory_ceiling_gb_per_s.value_or(0) > 0)
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
  result.bytes_per_epoch = result.bytes_per_step * static_cast<double>(first.data.steps_per_epoch);
  result.buckets = static_cast<std::int64_t>(first.buckets.size());
  for (const auto& bucket : first.buckets)
    result.largest_message = std::max(result.largest_message, static_cast<double>(bucket.bytes));
  result.sent_per_step = sent.empty() ? 0 : measure::estimate(sent).median;
  const double sent_by_ring = bus_factor("all_reduce", cell.workers);
  result.ring_per_step = sent_by_ring * result.bytes_per_step;
  result.is_ring_traffic =
      std::abs(result.sent_per_step - result.ring_per_step) <= 0.01 * result.ring_per_step;
  result.transfer_s = pooled(transfer);
  if (result.transfer_s.median <= 0) return std::nullopt;
  result.algbw = over(result.bytes_per_step / 1e9, result.transfer_s);
  result.busbw = scaled(result.algbw, sent_by_ring);
  if (!ceilings.empty()) {
    result.ceiling = measure::estimate(ceilings);
    // Ceilings vary between repeats as times do, so their interval is included. A single ceiling has none.
    // A ceiling below the steps' own bandwidth is none: it is timed shortly, and something slowed it.
    if (result.ceiling->median > 0 && result.busbw.median <= result.ceiling->median) {
      result.utilisation = has_interval(*result.ceiling) ? ratio(result.busbw, *result.ceiling)
                                                         : scaled(result.busbw, 1 / result.ceiling->median);
      result.utilisation->high = std::min(result.utilisation->high, 1.0);
    }
  }
  return result;
}

}  // namespace paceline::analysis
