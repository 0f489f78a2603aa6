#include "engine/cpu/optimizer/weight_passes.h"

#include <algorithm>
#include <cmath>

namespace paceline::engine::cpu {

WeightPasses::WeightPasses(const Program& program) : elements_(program.layout().elements) {
  const auto& slots = program.layout().slots;
  std::vector<bool> is_packed_once(slots.size());
  for (const auto& entry : program.ops()) {
    if (entry.conv == nullptr) continue;
    const ConvWeights& weights = entry.conv->weights();
    const auto tasks = weights.pack_tasks();
    for (int number = 0; number < static_cast<int>(tasks.size()); ++number) {
      const PackTask& task = tasks[static_cast<std::size_t>(number)];
      scratch_bytes_ = std::max(scratch_bytes_, task.scratch_bytes);
      is_packed_once[static_cast<std::size_t>(task.slot)] = task.is_only;
      (task.is_only ? first_packs_ : later_packs_)
          .push_back({.weights = &weights, .number = number, .task = task});
    }
  }
  for (int slot = 0; slot < static_cast<int>(slots.size()); ++slot) {
    const auto& [number, offset, elements] = slots[static_cast<std::size_t>(slot)];
    const graph::Parameter& parameter = program.graph().parameters[static_cast<std::size_t>(number)];
    const bool learns = graph::is_trainable(parameter.role) && !parameter.is_frozen();
    const int parts = ranges_of(elements, kRangeElements);
    for (int part = 0; part < parts; ++part) {
      Range range = range_of(elements, part, parts, 16);
      range = {.begin = offset + range.begin, .end = offset + range.end};
      if (learns) learning_.push_back(range);
      if (!is_packed_once[static_cast<std::size_t>(slot)]) loose_.push_back({.slot = slot, .range = range});
    }
  }
  // Longer passes first, so that the threads in update()'s loops finish at about the same time.
  const int threads = program.options().threads;
  for (auto* packs : {&first_packs_, &later_packs_}) {
    std::ranges::stable_sort(*packs, std::ranges::greater{}, &Pack::bytes);
    *packs = dealt(*packs, threads);
  }
  update_order_ = in_ranges(static_cast<int>(first_packs_.size()), static_cast<int>(loose_.size()), threads);
}

void WeightPasses::pack(const ExecContext& exec) const {
  const auto first = static_cast<int>(first_packs_.size()), later = static_cast<int>(later_packs_.size());
  exec.pool.run(first + later, [&](int item, int) {
    const Pack& pack = item < later ? later_packs_[static_cast<std::size_t>(item)]
                                    : first_packs_[static_cast<std::size_t>(item - later)];
    pack.weights->pack(exec, pack.number);
  });
}

double WeightPasses::gradient_squares(const ExecContext& exec, std::int64_t begin, std::int64_t end) const {
  const auto first = std::ranges::lower_bound(learning_, begin, {}, &Range::begin);
  const auto last = std::ranges::lower_bound(first, learning_.end(), end, {}, &Range::begin);
  std::vector<double> squares(static_cast<std::size_t>(last - first));
  exec.pool.run(static_cast<int>(squares.size()), [&](int item, int) {
    const Range range = first[item];
    squares[static_cast<std::size_t>(item)] =
        exec.kernels.update.sum_of_squares(exec.gradients + range.begin, range.size());
  });
  double sum = 0;
  for (const double one : squares) sum += one;
  return sum;
}

double WeightPasses::clip(const ExecContext& exec, const UpdateRule& rule) const {
  const auto ranges = static_cast<int>(learning_.size());
  const double norm = std::sqrt(gradient_squares(exec, 0, elements_));
  const auto factor = static_cast<float>(rule.clip_factor(norm));
  if (factor == 1) return norm;
  exec.pool.run(ranges, [&](int item, int) {
    const Range range = learning_[static_cast<std::size_t>(item)];
    for (std::int64_t i = range.begin; i < range.end; ++i) exec.gradients[i] *= factor;
  });
  return norm;
}

void WeightPasses::update(const ExecContext& exec, const Update& update) const {
  const auto packs = static_cast<int>(first_packs_.size());
  exec.pool.run(static_cast<int>(update_order_.size()), [&](int item, int thread) {
    const int task = update_order_[static_cast<std::size_t>(item)];
    if (task >= packs) {
      const Loose& weights = loose_[static_cast<std::size_t>(task - packs)];
      return update.apply(weights.slot, weights.range);
    }
    const Pack& pack = first_packs_[static_cast<std::size_t>(task)];
    pack.weights->update_and_pack(exec, update, pack.number,
                                  reinterpret_cast<float*>(exec.memory.scratch + thread * scratch_bytes_));
  });
  exec.pool.run(static_cast<int>(later_packs_.size()), [&](int item, int) {
    const Pack& pack = later_packs_[static_cast<std::size_t>(item)];
    pack.weights->pack(exec, pack.number);
  });
  update.apply_running();
}

std::int64_t WeightPasses::update_bytes(int state_slots) const {
  // Weights and state are read and written, gradients read.
  std::int64_t bytes = (3 + 2 * state_slots) * 4 * elements_;
  for (const Pack& pack : first_packs_) bytes += pack.task.packed_bytes;
  for (const Pack& pack : later_packs_) bytes += pack.bytes();
  return bytes;
}

}  // namespace paceline::engine::cpu
