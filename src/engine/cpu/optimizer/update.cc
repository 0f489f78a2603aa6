#include "engine/cpu/optimizer/update.h"

#include <cmath>
#include <utility>

#include "base/error.h"

namespace paceline::engine::cpu {

Update::Update(const graph::Graph& graph, const graph::Layout& layout, const Kernels& kernels,
               const UpdateRule& rule, double lr, std::int64_t update, UpdateArrays arrays)
    : graph_(graph),
      layout_(layout),
      kernels_(kernels.update),
      rule_(rule),
      arrays_(std::move(arrays)),
      numbers_(layout.slots.size()) {
  base::expects(update >= 1, "updates count from 1");
  base::expects(static_cast<int>(arrays_.state.size()) >= state_slots(rule),
                "the engine was compiled for a rule with as much state");
  for (std::size_t i = 0; i < layout.slots.size(); ++i) {
    const auto& parameter = graph.parameters[static_cast<std::size_t>(layout.slots[i].parameter)];
    if (graph::is_trainable(parameter.role) && !parameter.is_frozen())
      numbers_[i] = numbers_of(layout.slots[i], lr * parameter.rate, update);
  }
}

UpdateNumbers Update::numbers_of(const graph::Slot& slot, double lr, std::int64_t update) const {
  const auto& parameter = graph_.parameters[static_cast<std::size_t>(slot.parameter)];
  const bool is_weight = parameter.role == graph::Role::weight;
  const double decay = rule_.weight_decay / parameter.rate;
  UpdateNumbers n{.momentum = static_cast<float>(rule_.momentum)};
  if (rule_.kind == UpdateKind::lars) {
    n.weight_decay = is_weight ? static_cast<float>(decay) : 0.0f;
    n.lr = static_cast<float>(lr * (is_weight ? lars_rate(slot, decay) : 1));
    return n;
  }
  n.lr = static_cast<float>(lr);
  n.weight_decay = is_weight || rule_.decay_norm_and_bias ? static_cast<float>(decay) : 0.0f;
  n.nesterov = rule_.nesterov;
  n.epsilon = static_cast<float>(rule_.epsilon);
  const double beta1 = rule_.smoothing();
  n.beta1 = static_cast<float>(beta1);
  n.beta2 = static_cast<float>(rule_.beta2);
  n.rest1 = static_cast<float>(1 - beta1);
  n.rest2 = static_cast<float>(1 - rule_.beta2);
  const auto count = static_cast<double>(update);
  n.step_size = static_cast<float>(lr / (1 - std::pow(rule_.beta1, count)));
  n.inverse_root2 = static_cast<float>(1 / std::sqrt(1 - std::pow(rule_.beta2, count)));
  return n;
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
  const auto state = [&](std::size_t number) {
    return number < arrays_.state.size() ? arrays_.state[number] + range.begin : nullptr;
  };
  kernels_.rules[static_cast<int>(rule_.kind)](*n, w, gradients, state(0), state(1), range.size());
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
