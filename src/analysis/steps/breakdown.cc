#include "analysis/steps/breakdown.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"

namespace paceline::analysis {
namespace {

using measure::Phase;
using measure::RankRecord;
using measure::Record;

/// Sums over all ranks of all repeats; a figure that one of them lacks is unknown.
struct LoaderSums {
  double prepare_s = 0, processor_s = 0, samples = 0, ready = 0, queue = 0, waits = 0, steps = 0;
  bool known = true;
};

void add_loader(LoaderSums& sums, const RankRecord& rank, double steps) {
  const bool has_none = rank.loader_threads == 0 && !rank.loader_processor_s;  // it is handed its batches
  if (has_none) return;
  if (!rank.loader_processor_s || !rank.loader_ready || !rank.loader_queue || !rank.loader_waits) {
    sums.known = false;
    return;
  }
  sums.prepare_s += rank.loader_prepare_s;
  sums.processor_s += *rank.loader_processor_s;
  sums.ready += steps * *rank.loader_ready;
  sums.queue += steps * static_cast<double>(*rank.loader_queue);
  sums.waits += static_cast<double>(*rank.loader_waits);
  sums.steps += steps;
}

void add_phases(Parts& sum, const RankRecord& rank, double weight) {
  sum.forward += weight * seconds_in(rank, Phase::forward);
  sum.backward += weight * seconds_in(rank, Phase::backward);
  sum.update += weight * seconds_in(rank, Phase::update);
  sum.exposed_transfer += weight * seconds_in(rank, Phase::exposed_transfer);
  sum.exposed_wait += weight * seconds_in(rank, Phase::exposed_wait);
  sum.data_wait += weight * seconds_in(rank, Phase::data_wait);
  sum.copy += weight * seconds_in(rank, Phase::copy);
  sum.other += weight * seconds_in(rank, Phase::other);
}

double own_work(const Parts& parts) { return parts.total() - parts.exposed(); }

/// Images per second that this rank's loader threads could have prepared if nothing else had been slower.
double loader_rate(const RankRecord& rank, double samples) {
  if (rank.loader_prepare_s <= 0) return 0;
  return samples / rank.loader_prepare_s * std::max(1, rank.loader_threads);
}

std::vector<const Record*> measured_records(const Cell& cell) {
  std::vector<const Record*> records;
  for (const Record* record : cell.records)
    if (!record->ranks.empty() && record->window.steps > 0) records.push_back(record);
  return records;
}

/// Finds the rank with the most work of its own over all repeats.
void find_slowest(Breakdown& result, const std::vector<const Record*>& records) {
  const std::size_t ranks = records.front()->ranks.size();
  double most = -1, sum = 0;
  for (std::size_t i = 0; i < ranks; ++i) {
    Parts parts;
    for (const Record* record : records)
      if (i < record->ranks.size())
        add_phases(parts, record->ranks[i], 1.0 / static_cast<double>(result.steps));
    sum += own_work(parts);
    if (own_work(parts) > most) {
      most = own_work(parts);
      result.slowest = parts;
      result.slowest_rank = records.front()->ranks[i].rank;
    }
  }
  const double mean = sum / static_cast<double>(ranks);
  result.imbalance = mean > 0 ? most / mean - 1 : 0;
}

/// One repeat by itself.
void add_repeat(Breakdown& result, const Record& record) {
  const double weight =
      1.0 / static_cast<double>(record.ranks.size()) / static_cast<double>(record.window.steps);
  Parts parts;
  double communication = 0;
  for (const RankRecord& rank : record.ranks) {
    add_phases(parts, rank, weight);
    communication += weight * rank.communication_s;
  }
  result.repeats.push_back(parts);
  result.communication_repeats.push_back(communication);
}

bool waits_for_data(const Breakdown& breakdown) {
  return breakdown.mean.data_wait > kDataBound * breakdown.mean.total();
}

/// False for a loader about which nothing is known, and for one without a thread: steps wait for it however
/// fast it is.
bool is_loader_fast_enough(const Breakdown& breakdown) {
  if (breakdown.prepares_in_steps) return false;
  const double used = static_cast<double>(breakdown.cell->global_batch) / breakdown.mean.total();
  return breakdown.loader_images_per_s >= kLoaderFastEnough * used;
}

}  // namespace

LoaderUse loader_use(const Breakdown& breakdown) {
  LoaderUse use;
  const auto batch = static_cast<double>(breakdown.cell->global_batch);
  const double step = breakdown.mean.total();
  use.used_images_per_s = batch / step;
  use.wanted_images_per_s = batch / (step - breakdown.mean.data_wait);
  use.ceiling_images_per_s = breakdown.loader_images_per_s;
  LoaderSums sums;
  for (const Record* record : breakdown.cell->records) {
    for (const RankRecord& rank : record->ranks) {
      add_loader(sums, rank, static_cast<double>(record->window.steps));
      use.threads_per_worker = breakdown.prepares_in_steps ? 0 : std::max(1, rank.loader_threads);
    }
    sums.samples += static_cast<double>(record->window.samples);
  }
  if (use.ceiling_images_per_s > 0) {
    constexpr double kMost = 9999;  // for steps that do nothing but wait
    const double of_one_thread_each = use.ceiling_images_per_s / std::max(1, use.threads_per_worker);
    const double wanted = std::ceil(kLoaderFastEnough * use.wanted_images_per_s / of_one_thread_each);
    use.threads_wanted = static_cast<int>(std::min(wanted, kMost));
  }
  if (!sums.known || sums.steps <= 0) return use;
  if (sums.processor_s > 0) use.images_per_s_a_core = sums.samples / sums.processor_s;
  if (sums.prepare_s > 0) use.computing_share = sums.processor_s / sums.prepare_s;
  use.ready = sums.ready / sums.steps;
  use.queue = sums.queue / sums.steps;
  use.waited_share = sums.waits / sums.steps;
  return use;
}

Breakdown breakdown(const Cell& cell) {
  const auto records = measured_records(cell);
  base::expects(!records.empty(), "a breakdown is of a measured cell");
  Breakdown result;
  result.cell = &cell;
  result.closure = 1;
  for (const Record* record : records) result.steps += record->window.steps;
  for (const Record* record : records) {
    const double weight = 1.0 / static_cast<double>(record->ranks.size()) / static_cast<double>(result.steps);
    // One worker may prepare the batches of all (--parallel data-parallel).
    const auto loaders = std::max<std::ptrdiff_t>(
        1, std::ranges::count_if(record->ranks, [](const auto& rank) { return rank.loader_prepare_s > 0; }));
    for (const RankRecord& rank : record->ranks) {
      add_phases(result.mean, rank, weight);
      result.prepares_in_steps =
          result.prepares_in_steps || (rank.loader_threads == 0 && rank.loader_queue == 0);
      result.communication_total += weight * rank.communication_s;
      result.transfer += weight * rank.transfer_s;
      result.late_peer += weight * rank.late_peer_s;
      result.outside_steps += seconds_in(rank, {Phase::evaluation, Phase::checkpoint}) /
                              static_cast<double>(record->ranks.size());
      const double closure =
          rank.wall_s > 0 ? std::accumulate(rank.phases.begin(), rank.phases.end(), 0.0) / rank.wall_s : 0;
      if (std::abs(closure - 1) > std::abs(result.closure - 1)) result.closure = closure;
      const double samples = static_cast<double>(record->window.samples) / static_cast<double>(loaders);
      result.loader_images_per_s += loader_rate(rank, samples) / static_cast<double>(records.size());
    }
    add_repeat(result, *record);
  }
  const double hidden = result.communication_total - result.mean.exposed();
  result.overlapped = std::max(0.0, hidden);
  result.woken_late = std::max(0.0, -hidden);
  find_slowest(result, records);
  return result;
}

bool is_data_bound(const Breakdown& breakdown) {
  return waits_for_data(breakdown) && !is_loader_fast_enough(breakdown);
}

bool waits_for_scheduling(const Breakdown& breakdown) {
  return waits_for_data(breakdown) && is_loader_fast_enough(breakdown);
}

Residual residual(const Breakdown& baseline, const Breakdown& other) {
  const double growth = static_cast<double>(other.cell->workers) / baseline.cell->workers;
  const double steps = other.cell->full_steps();
  const double share = baseline.cell->full_steps() / growth;
  const auto beyond = [&](double here, double before) { return steps * here - share * before; };
  const Parts& a = baseline.mean;
  const Parts& b = other.mean;
  Residual result;
  result.epoch_s = steps * b.total();
  result.residual_s = beyond(b.total(), a.total());
  result.exposed_transfer_s = beyond(b.exposed_transfer, a.exposed_transfer);
  result.waiting_s = beyond(b.exposed_wait, a.exposed_wait);
  result.data_wait_s = beyond(b.data_wait, a.data_wait);
  result.slower_kernels_s = beyond(b.compute(), a.compute());
  result.rest_s = beyond(b.copy + b.other, a.copy + a.other);
  result.communication_s = steps * other.communication_total;
  return result;
}

}  // namespace paceline::analysis
