#include "engine/reference/optimizer/update.h"

#include <cmath>

#include "base/error.h"

namespace paceline::engine::reference {
namespace {

/// One parameter's part of the flat arrays, as the rules see it.
template <typename T>
struct ParameterArrays {
  std::int64_t elements;
  T* weight;
  const T* gradient;
  T* state[2];
  double decay;  // weight decay, or 0 where this role has none
};

template <typename T>
double norm(const T* values, std::int64_t count) {
  double squares = 0;
  for (std::int64_t i = 0; i < count; ++i)
    squares += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  return std::sqrt(squares);
}

/// Calls apply(w, g, a, b) for each element, all double; what it leaves in w, a, b is stored.
template <typename T, typename Apply>
void for_each(const ParameterArrays<T>& arrays, Apply apply) {
  for (std::int64_t i = 0; i < arrays.elements; ++i) {
    double w = static_cast<double>(arrays.weight[i]);
    double a = arrays.state[0] != nullptr ? static_cast<double>(arrays.state[0][i]) : 0;
    double b = arrays.state[1] != nullptr ? static_cast<double>(arrays.state[1][i]) : 0;
    apply(w, static_cast<double>(arrays.gradient[i]), a, b);
    arrays.weight[i] = static_cast<T>(w);
    if (arrays.state[0] != nullptr) arrays.state[0][i] = static_cast<T>(a);
    if (arrays.state[1] != nullptr) arrays.state[1][i] = static_cast<T>(b);
  }
}

template <typename T>
void sgd(const ParameterArrays<T>& arrays, const UpdateRule& rule, double lr) {
  for_each(arrays, [&](double& w, double g, double& velocity, double&) {
    g += arrays.decay * w;
    if (rule.momentum != 0) {
      velocity = rule.momentum * velocity + g;
      g = rule.nesterov ? g + rule.momentum * velocity : velocity;
    }
    w -= lr * g;
  });
}

template <typename T>
void lars(const ParameterArrays<T>& arrays, const UpdateRule& rule, double lr, bool is_weight) {
  double local_lr = 1;
  if (is_weight) {
    const double weight = norm(arrays.weight, arrays.elements),
                 gradient = norm(arrays.gradient, arrays.elements);
    if (weight > 0 && gradient > 0) local_lr = rule.trust * weight / (gradient + arrays.decay * weight);
  }
  for_each(arrays, [&](double& w, double g, double& velocity, double&) {
    velocity = rule.momentum * velocity + lr * local_lr * (g + arrays.decay * w);
    w -= velocity;
  });
}

template <typename T>
void adam(const ParameterArrays<T>& arrays, const UpdateRule& rule, double lr, std::int64_t update,
          bool decoupled) {
  const double correction1 = 1 - std::pow(rule.beta1, static_cast<double>(update));
  const double correction2 = 1 - std::pow(rule.beta2, static_cast<double>(update));
  for_each(arrays, [&](double& w, double g, double& first, double& second) {
    if (decoupled)
      w -= lr * arrays.decay * w;
    else
      g += arrays.decay * w;
    first = rule.beta1 * first + (1 - rule.beta1) * g;
    second = rule.beta2 * second + (1 - rule.beta2) * g * g;
    w -= lr * (first / correction1) / (std::sqrt(second / correction2) + rule.epsilon);
  });
}

template <typename T>
void rmsprop(const ParameterArrays<T>& arrays, const UpdateRule& rule, double lr) {
  for_each(arrays, [&](double& w, double g, double& square, double& velocity) {
    g += arrays.decay * w;
    square = rule.alpha * square + (1 - rule.alpha) * g * g;
    const double step = g / (std::sqrt(square) + rule.epsilon);
    velocity = rule.momentum * velocity + step;
    w -= lr * velocity;
  });
}

template <typename T>
void adadelta(const ParameterArrays<T>& arrays, const UpdateRule& rule, double lr) {
  for_each(arrays, [&](double& w, double g, double& square, double& changes) {
    g += arrays.decay * w;
    square = rule.rho * square + (1 - rule.rho) * g * g;
    const double change = std::sqrt(changes + rule.epsilon) / std::sqrt(square + rule.epsilon) * g;
    changes = rule.rho * changes + (1 - rule.rho) * change * change;
    w -= lr * change;
  });
}

}  // namespace

template <typename T>
void apply_update(const graph::Graph& graph, const graph::Layout& layout, const UpdateRule& rule, double lr,
                  std::int64_t update, std::span<T> weights, std::span<const T> gradients,
                  const std::vector<std::span<T>>& state) {
  base::expects(update >= 1, "updates count from 1");
  base::expects(static_cast<int>(state.size()) >= state_slots(rule), "the rule has the state it needs");
  for (const graph::Slot& slot : layout.slots) {
    const graph::Parameter& parameter = graph.parameters[static_cast<std::size_t>(slot.parameter)];
    if (!graph::is_trainable(parameter.role)) {
      const auto* node =
          graph.nodes[static_cast<std::size_t>(parameter.node)].template as<graph::BatchNorm>();
      for (std::int64_t i = slot.offset; i < slot.offset + slot.elements; ++i) {
        T& running = weights[static_cast<std::size_t>(i)];
        running =
            static_cast<T>((1 - node->momentum) * static_cast<double>(running) +
                           node->momentum * static_cast<double>(gradients[static_cast<std::size_t>(i)]));
      }
      continue;
    }
    if (parameter.is_frozen()) continue;
    const double own_lr = lr * parameter.rate;
    const bool is_weight = parameter.role == graph::Role::weight;
    const bool decays = is_weight || (rule.decay_norm_and_bias && rule.kind != UpdateKind::lars);
    ParameterArrays<T> arrays{.elements = slot.elements,
                              .weight = weights.data() + slot.offset,
                              .gradient = gradients.data() + slot.offset,
                              .state = {nullptr, nullptr},
                              .decay = decays ? rule.weight_decay / parameter.rate : 0};
    for (int i = 0; i < state_slots(rule); ++i)
      arrays.state[i] = state[static_cast<std::size_t>(i)].data() + slot.offset;
    switch (rule.kind) {
      case UpdateKind::sgd:
        sgd(arrays, rule, own_lr);
        break;
      case UpdateKind::lars:
        lars(arrays, rule, own_lr, is_weight);
        break;
      case UpdateKind::adam:
      case UpdateKind::adamw:
        adam(arrays, rule, own_lr, update, rule.kind == UpdateKind::adamw);
        break;
      case UpdateKind::rmsprop:
        rmsprop(arrays, rule, own_lr);
        break;
      case UpdateKind::adadelta:
        adadelta(arrays, rule, own_lr);
        break;
    }
  }
}

template void apply_update(const graph::Graph&, const graph::Layout&, const UpdateRule&, double, std::int64_t,
                           std::span<float>, std::span<const float>, const std::vector<std::span<float>>&);
template void apply_update(const graph::Graph&, const graph::Layout&, const UpdateRule&, double, std::int64_t,
                           std::span<double>, std::span<const double>, const std::vector<std::span<double>>&);

}  // namespace paceline::engine::reference
