#include "engine/cpu/optimizer/update.h"

#include <cmath>
#include <utility>

#include "base/error.h"

namespace paceline::engine::cpu {

Update::Update(const graph::Graph& graph, const graph::Layout& layout, const Kernels& kernels,
               base::ThreadPool& pool, const UpdateRule& rule, double lr, std::int64_t update,
               UpdateArrays arrays)
    : graph_(graph),
      layout_(layout),
      kernels_(kernels.update),
      rule_(rule),
      arrays_(std::move(arrays)),
      numbers_(layout.slots.size()) {
  base::expects(update >= 1, "updates count from 1");
  base::expects(static_cast<int>(arrays_.state.size()) >= state_slots(rule),
                "the engine was compiled for a rule with as much state");
  const auto fill = [&](int number, int) {
    const graph::Slot& slot = layout.slots[static_cast<std::size_t>(number)];
    const auto& parameter = graph.parameters[static_cast<std::size_t>(slot.parameter)];
    if (graph::is_trainable(parameter.role) && !parameter.is_frozen())
      numbers_[static_cast<std::size_t>(number)] = numbers_of(slot, lr * parameter.rate, update);
  };
  const auto slots = static_cast<int>(layout.slots.size());
  if (rule.has_layer_rates())
    pool.run(slots, fill);
  else
    for (int number = 0; number < slots; ++number) fill(number, 0);
}

UpdateNumbers Update::numbers_of(const graph::Slot& slot, double lr, std::int64_t update) const {
  const auto& parameter = graph_.parameters[static_cast<std::size_t>(slot.parameter)];
  const bool is_weight = parameter.role == graph::Role::weight;
  const double decay = rule_.decay_of(is_weight, parameter.rate);
  const bool is_lamb = rule_.kind == UpdateKind::lamb;
  const double beta1 = rule_.smoothing();
  const auto count = static_cast<double>(update);
  UpdateNumbers n{.lr = static_cast<float>(lr),
                  .momentum = static_cast<float>(rule_.momentum),
                  .weight_decay = static_cast<float>(decay),
                  .beta1 = static_cast<float>(beta1),
                  .beta2 = static_cast<float>(rule_.beta2),
                  .epsilon = static_cast<float>(rule_.epsilon),
                  .rest1 = static_cast<float>(1 - beta1),
                  .rest2 = static_cast<float>(1 - rule_.beta2),
                  .step_size = static_cast<float>((is_lamb ? 1 : lr) / (1 - std::pow(rule_.beta1, count))),
                  .inverse_root2 = static_cast<float>(1 / std::sqrt(1 - std::pow(rule_.beta2, count))),
                  .nesterov = rule_.nesterov};
  if (is_weight && rule_.has_layer_rates())
    n.lr = static_cast<float>(lr * (is_lamb ? lamb_rate(slot, n) : lars_rate(slot, decay)));
  return n;
}

/// |w| / |u| of a weight whose step is u.
double Update::lamb_rate(const graph::Slot& slot, const UpdateNumbers& numbers) const {
  const double weight = std::sqrt(kernels_.sum_of_squares(arrays_.weights + slot.offset, slot.elements));
  const double step = std::sqrt(
      kernels_.sum_of_squared_steps(numbers, arrays_.weights + slot.offset, arrays_.gradients + slot.offset,
                                    state(0, slot.offset), state(1, slot.offset), slot.elements));
  return !(weight <= 0) && !(step <= 0) ? weight / step : 1;
}

/// trust |w| / (|g| + decay |w|) of a weight.
double Update::lars_rate(const graph::Slot& slot, double decay) const {
  const double weight = std::sqrt(kernels_.sum_of_squares(arrays_.weights + slot.offset, slot.elements));
  const double gradient = std::sqrt(kernels_.sum_of_squares(arrays_.gradients + slot.offset, slot.elements));
  // !(x <= 0), so that NaN stays one.
  return !(weight <= 0) && !(gradient <= 0) ? rule_.trust * weight / (gradient + decay * weight) : 1;
}

void Update::apply(int slot, Range range, const float* gradients) const {
  const auto& n = numbers_[static_cast<std::size_t>(slot)];
  if (!n) return;
  float* w = arrays_.weights + range.begin;
  kernels_.rules[static_cast<int>(rule_.kind)](*n, w, gradients, state(0, range.begin), state(1, range.begin),
                                               range.size());
}

/// running = (1 - momentum) * running + momentum * batch statistic.
void Update::apply_running() const {
  for (const graph::Slot& slot : layout_.slots) {
    const graph::Parameter& parameter = graph_.parameters[static_cast<std::size_t>(slot.parameter)];
    if (graph::is_trainable(parameter.role)) continue;
    const auto& norm = *graph_.nodes[static_cast<std::size_t>(parameter.node)].as<graph::BatchNorm>();
    if (norm.is_frozen) continue;
    const double momentum = norm.momentum;
    for (std::int64_t i = slot.offset; i < slot.offset + slot.elements; ++i)
      arrays_.weights[i] = static_cast<float>((1 - momentum) * static_cast<double>(arrays_.weights[i]) +
                                              momentum * static_cast<double>(arrays_.gradients[i]));
  }
}

}  // namespace paceline::engine::cpu
