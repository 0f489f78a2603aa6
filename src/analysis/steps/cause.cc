#include "analysis/steps/cause.h"

#include <algorithm>
#include <functional>

#include "analysis/compare/comparability.h"
#include "analysis/compare/setup.h"

namespace paceline::analysis {
namespace {

std::optional<double> quotient(std::optional<double> a, std::optional<double> b) {
  if (!a || !b || !(*b > 0)) return std::nullopt;
  return *a / *b;
}

/// Bytes that the model moves in a step, over all workers: each has weights of its own.
std::optional<double> bytes_a_step(const Cell& cell) {
  const auto& model = cell.record().model;
  if (!model.bytes_a_sample || !model.bytes_a_step) return std::nullopt;
  return static_cast<double>(cell.global_batch) * static_cast<double>(*model.bytes_a_sample) +
         static_cast<double>(cell.workers) * static_cast<double>(*model.bytes_a_step);
}

void find_product_and_copy(Reach& result) {
  const auto& record = result.cell->record();
  if (!record.peak || record.peak->threads <= 0 || record.peak->precision != record.precision) return;
  // The memory bandwidth was measured with the cores of process 0; other processes have cores of their own.
  if (processes(record) > 1) return;
  const double threads = static_cast<double>(result.cell->workers) * result.cell->threads_per_worker;
  const double share = std::min(1.0, threads / record.peak->threads);
  if (record.peak->flops_per_s > 0) result.product_flops_per_s = share * record.peak->flops_per_s;
  if (record.peak->bytes_per_s > 0) result.copy_bytes_per_s = record.peak->bytes_per_s;
}

/// Whether the two cells differ in their batch and in nothing else that could explain the difference.
bool is_of_series(const Cell& one, const Cell& other) {
  return one.kind == other.kind && one.workers == other.workers &&
         one.threads_per_worker == other.threads_per_worker && one.emulated == other.emulated &&
         circumstances(one.record()) == circumstances(other.record()) &&
         !differ_in(one.setup, other.setup, SetupKind::joined) &&
         compare(one.record(), other.record(), Topic::sweep).comparable();
}

Cause cause(const Reach& from, const Reach& to) {
  const auto of_image = [](const Reach& reach, double seconds) {
    return seconds / static_cast<double>(reach.cell->local_batch);
  };
  Cause result{.from = &from, .to = &to};
  const Parts &a = from.ledger.mean, &b = to.ledger.mean;
  const auto add = [&](CausePart part, double before, double after) {
    result.parts.push_back({part, of_image(from, before), of_image(to, after)});
    result.before_s += result.parts.back().before_s;
    result.after_s += result.parts.back().after_s;
  };
  add(CausePart::forward_and_backward, a.forward + a.backward, b.forward + b.backward);
  add(CausePart::update, a.update, b.update);
  add(CausePart::communication, a.exposed(), b.exposed());
  add(CausePart::data_wait, a.data_wait, b.data_wait);
  add(CausePart::other, a.copy + a.other, b.copy + b.other);
  const double sign = result.before_s >= result.after_s ? 1 : -1;
  std::ranges::stable_sort(result.parts, std::ranges::greater{},
                           [&](const Cause::Part& part) { return sign * part.saved_s(); });
  return result;
}

}  // namespace

std::optional<Bound> Reach::bound() const {
  // Winograd's F(4x4, 3x3), the largest saving of all algorithms, does a quarter of the direct form's
  // multiplications.
  constexpr double kMostSaved = 4;
  const auto balance = quotient(product_flops_per_s, copy_bytes_per_s);
  if (!balance || !intensity) return std::nullopt;
  if (flops_per_s && *flops_per_s > kMostSaved * *product_flops_per_s) return std::nullopt;
  if (*intensity / kMostSaved >= *balance) return Bound::arithmetic;
  // Counted bytes that come faster than a copy do not all come from memory.
  const bool is_fed = bytes_per_s && *bytes_per_s > *copy_bytes_per_s;
  return *intensity < *balance && !is_fed ? Bound::memory : Bound::either;
}

Reach reach(const Cell& cell) {
  Reach result{.cell = &cell, .ledger = breakdown(cell)};
  const Parts& parts = result.ledger.mean;
  const double loading = parts.total() > 0 ? parts.data_wait / parts.total() : 0;
  result.epoch_without_data_s = scaled(cell.epoch_s, 1 - loading);
  const auto flops =
      static_cast<double>(cell.record().model.training_flops) * static_cast<double>(cell.global_batch);
  const double computing = parts.forward + parts.backward;
  if (flops > 0 && computing > 0) result.flops_per_s = flops / computing;
  if (const auto moved = bytes_a_step(cell); moved && *moved > 0) {
    if (parts.compute() > 0) result.bytes_per_s = *moved / parts.compute();
    if (flops > 0) result.intensity = flops / *moved;
  }
  find_product_and_copy(result);
  return result;
}

bool Cause::is_noise() const {
  const auto of_image = [](const Reach& reach) {
    return scaled(reach.cell->step_s, 1 / static_cast<double>(reach.cell->local_batch));
  };
  const Estimate a = of_image(*from), b = of_image(*to);
  return a.low <= b.high && b.low <= a.high;
}

std::optional<Cause> BatchSeries::why_faster() const {
  if (fastest == 0) return std::nullopt;
  return cause(batches.front(), batches[fastest]);
}

std::optional<Cause> BatchSeries::why_no_longer() const {
  if (fastest + 1 >= batches.size()) return std::nullopt;
  return cause(batches[fastest], batches.back());
}

std::vector<BatchSeries> batch_series(std::span<const Cell> cells) {
  std::vector<BatchSeries> all;
  for (const Cell& cell : cells) {
    if (!cell.is_measured() || (cell.kind != "sweep" && cell.kind != "scale")) continue;
    const auto same = std::ranges::find_if(all, [&](const BatchSeries& one) {
      return is_of_series(*one.batches.front().cell, cell) &&
             std::ranges::none_of(one.batches, [&](const Reach& other) {
               return other.cell->local_batch == cell.local_batch;
             });
    });
    (same == all.end() ? all.emplace_back() : *same).batches.push_back(reach(cell));
  }
  for (BatchSeries& series : all) {
    std::ranges::stable_sort(series.batches, {}, [](const Reach& one) { return one.cell->local_batch; });
    const auto fastest = std::ranges::max_element(
        series.batches, {}, [](const Reach& one) { return one.cell->images_per_s.median; });
    series.fastest = static_cast<std::size_t>(fastest - series.batches.begin());
  }
  return all;
}

}  // namespace paceline::analysis
