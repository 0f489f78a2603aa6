#include "engine/reference/engine.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "base/buffer.h"
#include "base/error.h"
#include "engine/reference/program.h"

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
  double clip;   // what the gradient is multiplied by
};

template <typename T>
double norm(const T* values, std::int64_t count) {
  double squares = 0;
  for (std::int64_t i = 0; i < count; ++i)
    squares += static_cast<double>(values[i]) * static_cast<double>(values[i]);
  return std::sqrt(squares);
}

/// The sum of squares of the gradients in [begin, end) of all parameters that learn.
template <typename T>
double squares_of(const graph::Graph& graph, const graph::Layout& layout, std::span<const T> gradients,
                  std::int64_t begin, std::int64_t end) {
  double squares = 0;
  for (const graph::Slot& slot : layout.slots) {
    const graph::Parameter& parameter = graph.parameters[static_cast<std::size_t>(slot.parameter)];
    if (slot.offset < begin || slot.offset >= end) continue;
    if (!graph::is_trainable(parameter.role) || parameter.is_frozen()) continue;
    squares += std::pow(norm(gradients.data() + slot.offset, slot.elements), 2);
  }
  return squares;
}

/// The L2 norm of all of them.
template <typename T>
double norm_of(const graph::Graph& graph, const graph::Layout& layout, std::span<const T> gradients) {
  return std::sqrt(squares_of(graph, layout, gradients, 0, layout.elements));
}

/// Calls apply(w, g, a, b) for each element, all double; what it leaves in w, a, b is stored.
template <typename T, typename Apply>
void for_each(const ParameterArrays<T>& arrays, Apply apply) {
  for (std::int64_t i = 0; i < arrays.elements; ++i) {
    double w = static_cast<double>(arrays.weight[i]);
    double a = arrays.state[0] != nullptr ? static_cast<double>(arrays.state[0][i]) : 0;
    double b = arrays.state[1] != nullptr ? static_cast<double>(arrays.state[1][i]) : 0;
    apply(w, arrays.clip * static_cast<double>(arrays.gradient[i]), a, b);
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
                 gradient = arrays.clip * norm(arrays.gradient, arrays.elements);
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

/// Computes all steps before the weights change, for their norm.
template <typename T>
void lamb(const ParameterArrays<T>& arrays, const UpdateRule& rule, double lr, std::int64_t update,
          bool is_weight) {
  const double correction1 = 1 - std::pow(rule.beta1, static_cast<double>(update));
  const double correction2 = 1 - std::pow(rule.beta2, static_cast<double>(update));
  std::vector<double> steps;
  steps.reserve(static_cast<std::size_t>(arrays.elements));
  const double weight = norm(arrays.weight, arrays.elements);
  for_each(arrays, [&](double& w, double g, double& first, double& second) {
    first = rule.beta1 * first + (1 - rule.beta1) * g;
    second = rule.beta2 * second + (1 - rule.beta2) * g * g;
    steps.push_back((first / correction1) / (std::sqrt(second / correction2) + rule.epsilon) +
                    arrays.decay * w);
  });
  const double step = norm(steps.data(), arrays.elements);
  const double local_lr = is_weight && weight > 0 && step > 0 ? weight / step : 1;
  auto next = steps.begin();
  for_each(arrays, [&](double& w, double, double&, double&) { w -= lr * local_lr * *next++; });
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

/// The unfolded matrix (twice: with its transpose) and the transposed weight of the largest convolution or
/// dense layer.
std::int64_t workspace_elements(const graph::Graph& graph) {
  std::int64_t most = 0;
  for (const graph::Node& node : graph.nodes) {
    if (node.inputs.empty()) continue;
    const graph::Shape& src = graph.nodes[static_cast<std::size_t>(node.inputs.front())].shape;
    if (const auto* conv = node.as<graph::Conv2d>()) {
      const std::int64_t rows = std::int64_t{1} * src.channels * conv->kernel.product();
      const std::int64_t unfolded = rows * node.shape.height * node.shape.width;
      most = std::max(most, unfolded + std::max(unfolded, rows * conv->channels));
    } else if (const auto* dense = node.as<graph::Dense>()) {
      const std::int64_t places = dense->flatten ? 1 : std::int64_t{1} * src.height * src.width;
      const std::int64_t unfolded = dense->flatten ? 0 : src.elements();
      const std::int64_t weight = node.shape.channels * src.elements() / places;
      most = std::max(most, unfolded + std::max(unfolded, weight));
    }
  }
  return most;
}

graph::MemoryPlan plan_of(const graph::Graph& graph, const CompileOptions& options) {
  constexpr auto kFloat = static_cast<std::int64_t>(sizeof(float));
  const std::int64_t flat = graph::flat_layout(graph).elements * kFloat;
  graph::MemoryPlan plan;
  plan.lines.push_back({"activations", activation_bytes(graph, options)});
  plan.lines.push_back({"weights", flat});
  if (options.training) {
    plan.lines.push_back({"gradients", flat});
    plan.lines.push_back({"optimizer state", flat * state_slots(options.rule)});
  }
  plan.lines.push_back({"workspace", workspace_elements(graph) * kFloat});
  return plan;
}

/// A flat float array of the layout's size, zeroed.
base::Buffer flat_array(const graph::Layout& layout) {
  base::Buffer buffer(static_cast<std::size_t>(layout.elements) * sizeof(float));
  buffer.fill_zero();
  return buffer;
}

class ReferenceEngine final : public Engine {
 public:
  ReferenceEngine(const graph::Graph& graph, const CompileOptions& options)
      : graph_(graph),
        layout_(graph::flat_layout(graph_)),
        plan_(plan_of(graph_, options)),
        weights_(flat_array(layout_)),
        gradients_(gradient_memory(options, layout_)),
        program_(graph_, layout_, options) {
    if (options.training)
      for (int slot = 0; slot < state_slots(options.rule); ++slot) state_.push_back(flat_array(layout_));
  }

  [[nodiscard]] std::string name() const override { return "reference"; }
  [[nodiscard]] const graph::Graph& graph() const override { return graph_; }
  [[nodiscard]] const graph::Layout& layout() const override { return layout_; }
  [[nodiscard]] const graph::MemoryPlan& plan() const override { return plan_; }

  std::span<float> weights() override { return weights_.as<float>(); }
  base::Array gradients() override { return gradients_.array(); }
  std::span<float> optimizer_state(int slot) override {
    base::expects(slot >= 0 && slot < static_cast<int>(state_.size()), "the rule keeps this state slot");
    return state_[static_cast<std::size_t>(slot)].as<float>();
  }
  void weights_changed() override {}

  LossSums forward(const StepInput& input) override { return program_.forward(input, weights()); }

  void backward(const GradientReady& on_ready) override {
    program_.backward(weights(), gradients().host(), on_ready);
  }

  void update(const UpdateRule& rule, double lr, std::int64_t update) override {
    std::vector<std::span<float>> state;
    for (auto& slot : state_) state.push_back(slot.as<float>());
    apply_update<float>(graph_, layout_, rule, lr, update, weights(), gradients().host(), state);
    if (rule.clips()) gradient_norm_ = norm_of<float>(graph_, layout_, gradients().host());
  }
  double gradient_squares(std::int64_t begin, std::int64_t end) override {
    return squares_of<float>(graph_, layout_, gradients().host(), begin, end);
  }
  double gradient_norm() override { return gradient_norm_; }

  LossSums evaluate(std::span<const float> images, std::span<const std::int32_t> labels, int count, int views,
                    std::span<double> logits) override {
    return program_.evaluate(images, labels, count, views, weights(), logits);
  }

  void observe(OpObserver observer) override { program_.observe(std::move(observer)); }
  [[nodiscard]] std::vector<KernelChoice> kernels() const override {
    return {{"every op", "reference",
             "plain loops in float, asked for by name; --device cpu is the fast engine"}};
  }

 private:
  const graph::Graph graph_;
  const graph::Layout layout_;
  const graph::MemoryPlan plan_;
  base::Buffer weights_;
  base::OwnedArray gradients_;
  std::vector<base::Buffer> state_;
  double gradient_norm_ = 0;
  Program<float> program_;
};

void check(const CompileOptions& options) {
  check_options(options, "reference");
  if (options.precision != Precision::f32)
    base::fail(
        base::ErrorKind::usage,
        "engine reference: it computes in fp32 only, but the precision is bf16; use --precision fp32 or "
        "--device cpu");
}

}  // namespace

template <typename T>
void apply_update(const graph::Graph& graph, const graph::Layout& layout, const UpdateRule& rule, double lr,
                  std::int64_t update, std::span<T> weights, std::span<const T> gradients,
                  const std::vector<std::span<T>>& state) {
  base::expects(update >= 1, "updates count from 1");
  base::expects(static_cast<int>(state.size()) >= state_slots(rule), "the rule has the state it needs");
  const double clip = rule.clips() ? rule.clip_factor(norm_of(graph, layout, gradients)) : 1;
  for (const graph::Slot& slot : layout.slots) {
    const graph::Parameter& parameter = graph.parameters[static_cast<std::size_t>(slot.parameter)];
    if (!graph::is_trainable(parameter.role)) {
      const auto* node =
          graph.nodes[static_cast<std::size_t>(parameter.node)].template as<graph::BatchNorm>();
      if (node->is_frozen) continue;
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
    ParameterArrays<T> arrays{.elements = slot.elements,
                              .weight = weights.data() + slot.offset,
                              .gradient = gradients.data() + slot.offset,
                              .state = {nullptr, nullptr},
                              .decay = rule.decay_of(is_weight, parameter.rate),
                              .clip = clip};
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
      case UpdateKind::lamb:
        lamb(arrays, rule, own_lr, update, is_weight);
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

std::unique_ptr<Engine> compile(const graph::Graph& graph, const CompileOptions& options) {
  check(options);
  return std::make_unique<ReferenceEngine>(graph, options);
}

graph::MemoryPlan plan(const graph::Graph& graph, const CompileOptions& options) {
  check(options);
  return plan_of(graph, options);
}

}  // namespace paceline::engine::reference
