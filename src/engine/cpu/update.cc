#include "engine/cpu/update.h"

#include <cmath>

#include "base/error.h"
#include "engine/cpu/parallel.h"

namespace paceline::engine::cpu {
namespace {

/// Neighbouring slots that are treated alike, as one range of the flat arrays (padding is zero and stays so).
struct Range {
  std::int64_t begin = 0, end = 0;
  bool decays = false;
  double rate = 1;
};

std::vector<Range> ranges_of(const graph::Graph& graph, const graph::Layout& layout, const UpdateRule& rule) {
  std::vector<Range> ranges;
  for (std::size_t i = 0; i < layout.slots.size(); ++i) {
    const graph::Slot& slot = layout.slots[i];
    const graph::Parameter& parameter = graph.parameters[static_cast<std::size_t>(slot.parameter)];
    if (!graph::is_trainable(parameter.role) || parameter.is_frozen()) continue;
    const std::int64_t end = i + 1 < layout.slots.size() ? layout.slots[i + 1].offset : layout.elements;
    const bool decays = parameter.role == graph::Role::weight || rule.decay_norm_and_bias;
    if (!ranges.empty() && ranges.back().end == slot.offset && ranges.back().decays == decays &&
        ranges.back().rate == parameter.rate) {
      ranges.back().end = end;
    } else {
      ranges.push_back({slot.offset, end, decays, parameter.rate});
    }
  }
  return ranges;
}

UpdateNumbers numbers_of(const UpdateRule& rule, double lr, std::int64_t update) {
  UpdateNumbers n{.lr = static_cast<float>(lr),
                  .momentum = static_cast<float>(rule.momentum),
                  .beta1 = static_cast<float>(rule.beta1),
                  .beta2 = static_cast<float>(rule.beta2),
                  .epsilon = static_cast<float>(rule.epsilon),
                  .nesterov = rule.nesterov};
  if (rule.kind == UpdateKind::rmsprop) n.beta1 = static_cast<float>(rule.alpha);
  if (rule.kind == UpdateKind::adadelta) n.beta1 = static_cast<float>(rule.rho);
  const auto count = static_cast<double>(update);
  n.rest1 = static_cast<float>(1 - (rule.kind == UpdateKind::rmsprop    ? rule.alpha
                                    : rule.kind == UpdateKind::adadelta ? rule.rho
                                                                        : rule.beta1));
  n.rest2 = static_cast<float>(1 - rule.beta2);
  n.step_size = static_cast<float>(lr / (1 - std::pow(rule.beta1, count)));
  n.inverse_root2 = static_cast<float>(1 / std::sqrt(1 - std::pow(rule.beta2, count)));
  return n;
}

void update_range(const UpdateKernels& kernels, const UpdateRule& rule, const UpdateNumbers& n,
                  const UpdateArrays& arrays, std::int64_t begin, std::int64_t count) {
  float* w = arrays.weights + begin;
  const float* g = arrays.gradients + begin;
  const auto state = [&](std::size_t slot) {
    return slot < arrays.state.size() ? arrays.state[slot] + begin : nullptr;
  };
  switch (rule.kind) {
    case UpdateKind::sgd:
      return kernels.sgd(n, w, g, state(0), count);
    case UpdateKind::adam:
      return kernels.adam(n, w, g, state(0), state(1), count);
    case UpdateKind::adamw:
      return kernels.adamw(n, w, g, state(0), state(1), count);
    case UpdateKind::rmsprop:
      return kernels.rmsprop(n, w, g, state(0), state(1), count);
    case UpdateKind::adadelta:
      return kernels.adadelta(n, w, g, state(0), state(1), count);
    case UpdateKind::lars:
      break;  // goes by parameter, below
  }
}

/// local_lr = trust |w| / (|g| + decay |w|) for weights, 1 for the rest, which has no decay either.
void update_lars(const graph::Graph& graph, const graph::Layout& layout, const Kernels& kernels,
                 base::ThreadPool& pool, const UpdateRule& rule, double lr, const UpdateArrays& arrays) {
  for (const graph::Slot& slot : layout.slots) {
    const graph::Parameter& parameter = graph.parameters[static_cast<std::size_t>(slot.parameter)];
    if (!graph::is_trainable(parameter.role) || parameter.is_frozen()) continue;
    const double decay = rule.weight_decay / parameter.rate;
    float* w = arrays.weights + slot.offset;
    const float* g = arrays.gradients + slot.offset;
    UpdateNumbers n{.momentum = static_cast<float>(rule.momentum)};
    double local_lr = 1;
    if (parameter.role == graph::Role::weight) {
      n.weight_decay = static_cast<float>(decay);
      const double weight = std::sqrt(kernels.update.sum_of_squares(w, slot.elements));
      const double gradient = std::sqrt(kernels.update.sum_of_squares(g, slot.elements));
      // !(x <= 0), so that NaN stays one.
      if (!(weight <= 0) && !(gradient <= 0)) local_lr = rule.trust * weight / (gradient + decay * weight);
    }
    n.lr = static_cast<float>(lr * parameter.rate * local_lr);
    parallel_parts(pool, slot.elements, kPartElements, [&](int, Part part) {
      kernels.update.lars(n, w + part.begin, g + part.begin, arrays.state[0] + slot.offset + part.begin,
                          part.size());
    });
  }
}

/// running = (1 - momentum) * running + momentum * batch statistic.
void update_running(const graph::Graph& graph, const graph::Layout& layout, const UpdateArrays& arrays) {
  for (const graph::Slot& slot : layout.slots) {
    const graph::Parameter& parameter = graph.parameters[static_cast<std::size_t>(slot.parameter)];
    if (graph::is_trainable(parameter.role)) continue;
    const double momentum =
        graph.nodes[static_cast<std::size_t>(parameter.node)].as<graph::BatchNorm>()->momentum;
    for (std::int64_t i = slot.offset; i < slot.offset + slot.elements; ++i)
      arrays.weights[i] = static_cast<float>((1 - momentum) * static_cast<double>(arrays.weights[i]) +
                                             momentum * static_cast<double>(arrays.gradients[i]));
  }
}

}  // namespace

void apply_update(const graph::Graph& graph, const graph::Layout& layout, const Kernels& kernels,
                  base::ThreadPool& pool, const UpdateRule& rule, double lr, std::int64_t update,
                  const UpdateArrays& arrays) {
  base::expects(update >= 1, "updates count from 1");
  base::expects(static_cast<int>(arrays.state.size()) >= state_slots(rule),
                "the engine was compiled for a rule with as much state");
  if (rule.kind == UpdateKind::lars) {
    update_lars(graph, layout, kernels, pool, rule, lr, arrays);
  } else {
    for (const Range& range : ranges_of(graph, layout, rule)) {
      UpdateNumbers n = numbers_of(rule, lr * range.rate, update);
      n.weight_decay = range.decays ? static_cast<float>(rule.weight_decay / range.rate) : 0.0f;
      parallel_parts(pool, range.end - range.begin, kPartElements, [&](int, Part part) {
        update_range(kernels.update, rule, n, arrays, range.begin + part.begin, part.size());
      });
    }
  }
  update_running(graph, layout, arrays);
}

}  // namespace paceline::engine::cpu
