#include "engine/reference/engine.h"

#include <algorithm>
#include <type_traits>
#include <utility>

#include "base/buffer.h"
#include "base/error.h"
#include "engine/reference/optimizer/update.h"
#include "engine/reference/program.h"

namespace paceline::engine::reference {
namespace {

/// The unfolded matrix (twice: with its transpose) and the transposed weight of the largest convolution or
/// dense layer.
std::int64_t workspace_elements(const graph::Graph& graph) {
  std::int64_t most = 0;
  for (const graph::Node& node : graph.nodes) {
    if (node.inputs.empty()) continue;
    const graph::Shape& src = graph.nodes[static_cast<std::size_t>(node.inputs.front())].shape;
    if (const auto* conv = node.as<graph::Conv2d>()) {
      const std::int64_t rows = std::int64_t{1} * src.channels * conv->kernel * conv->kernel;
      const std::int64_t unfolded = rows * node.shape.height * node.shape.width;
      most = std::max(most, unfolded + std::max(unfolded, rows * conv->channels));
    } else if (node.as<graph::Dense>()) {
      most = std::max(most, node.shape.channels * src.elements());
    }
  }
  return most;
}

graph::MemoryPlan plan_of(const graph::Graph& graph, const CompileOptions& options,
                          std::int64_t bytes_per_element) {
  const std::int64_t flat = graph::flat_layout(graph).elements * static_cast<std::int64_t>(sizeof(float));
  graph::MemoryPlan plan;
  plan.lines.push_back({"activations", activation_bytes(graph, options, bytes_per_element)});
  plan.lines.push_back({"weights", flat});
  if (options.training) {
    plan.lines.push_back({"gradients", flat});
    plan.lines.push_back({"optimizer state", flat * state_slots(options.rule)});
  }
  std::int64_t workspace = workspace_elements(graph) * bytes_per_element;
  if (bytes_per_element != sizeof(float))  // the program's own copy of the flat arrays, in its number type
    workspace +=
        flat / static_cast<std::int64_t>(sizeof(float)) * bytes_per_element * (options.training ? 2 : 1);
  plan.lines.push_back({"workspace", workspace});
  return plan;
}

/// A flat float array of the layout's size, zeroed.
base::Buffer flat_array(const graph::Layout& layout) {
  base::Buffer buffer(static_cast<std::size_t>(layout.elements) * sizeof(float));
  buffer.fill_zero();
  return buffer;
}

/// With T = float the program works on the engine's arrays themselves; otherwise on copies in T.
template <typename T>
class ReferenceEngine final : public Engine {
 public:
  ReferenceEngine(const graph::Graph& graph, const CompileOptions& options)
      : graph_(graph),
        layout_(graph::flat_layout(graph_)),
        plan_(plan_of(graph_, options, sizeof(T))),
        weights_(flat_array(layout_)),
        gradients_(gradient_memory(options, layout_)),
        program_(graph_, layout_, options) {
    if (options.training)
      for (int slot = 0; slot < state_slots(options.rule); ++slot) state_.push_back(flat_array(layout_));
    if constexpr (!kOwnArrays) {
      own_weights_.resize(static_cast<std::size_t>(layout_.elements));
      if (options.training) own_gradients_.resize(static_cast<std::size_t>(layout_.elements));
    }
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
  void weights_changed() override {
    if constexpr (!kOwnArrays) std::ranges::copy(weights(), own_weights_.begin());
  }

  LossSums forward(const StepInput& input) override { return program_.forward(input, program_weights()); }

  void backward(const GradientReady& on_ready) override {
    if constexpr (kOwnArrays) {
      program_.backward(program_weights(), gradients().host(), on_ready);
    } else {
      std::int64_t done = 0;
      program_.backward(program_weights(), own_gradients_, [&](std::int64_t ready) {
        std::transform(own_gradients_.begin() + done, own_gradients_.begin() + ready,
                       gradients().host().begin() + done,
                       [](T gradient) { return static_cast<float>(gradient); });
        done = ready;
        if (on_ready) on_ready(ready);
      });
    }
  }

  void update(const UpdateRule& rule, double lr, std::int64_t update) override {
    std::vector<std::span<float>> state;
    for (auto& slot : state_) state.push_back(slot.as<float>());
    apply_update<float>(graph_, layout_, rule, lr, update, weights(), gradients().host(), state);
    weights_changed();
  }

  LossSums evaluate(std::span<const float> images, std::span<const std::int32_t> labels, int count, int views,
                    std::span<double> logits) override {
    return program_.evaluate(images, labels, count, views, program_weights(), logits);
  }

  void observe(OpObserver observer) override { program_.observe(std::move(observer)); }
  [[nodiscard]] std::vector<KernelChoice> kernels() const override {
    return {{"every op", "reference",
             "plain loops in " + std::string(kOwnArrays ? "float" : "double") +
                 ", asked for by name; --device cpu is the fast engine"}};
  }

 private:
  static constexpr bool kOwnArrays = std::is_same_v<T, float>;
  [[nodiscard]] std::span<const T> program_weights() const {
    if constexpr (kOwnArrays)
      return weights_.as<float>();
    else
      return own_weights_;
  }

  const graph::Graph graph_;
  const graph::Layout layout_;
  const graph::MemoryPlan plan_;
  base::Buffer weights_;
  base::OwnedArray gradients_;
  std::vector<base::Buffer> state_;
  std::vector<T> own_weights_, own_gradients_;
  Program<T> program_;
};

void check(const CompileOptions& options) {
  if (options.precision != Precision::f32)
    base::fail(
        base::ErrorKind::usage,
        "engine reference: it computes in fp32 only, but the precision is bf16; use --precision fp32 or "
        "--device cpu");
  check_options(options, "reference");
}

}  // namespace

std::unique_ptr<Engine> compile(const graph::Graph& graph, const CompileOptions& options) {
  check(options);
  return std::make_unique<ReferenceEngine<float>>(graph, options);
}

std::unique_ptr<Engine> compile_double(const graph::Graph& graph, const CompileOptions& options) {
  check(options);
  return std::make_unique<ReferenceEngine<double>>(graph, options);
}

graph::MemoryPlan plan(const graph::Graph& graph, const CompileOptions& options) {
  check(options);
  return plan_of(graph, options, sizeof(float));
}

}  // namespace paceline::engine::reference
