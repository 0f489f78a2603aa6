#pragma once

/// The reference engine with values and gradients in double, which the tests compare with. The flat arrays
/// and the update are the reference engine's, in float.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/reference/engine.h"
#include "engine/reference/program.h"

namespace paceline::engine::reference {

class DoubleEngine final : public Engine {
 public:
  DoubleEngine(const graph::Graph& graph, const CompileOptions& options)
      : engine_(compile(graph, options)),
        program_(engine_->graph(), engine_->layout(), options),
        own_weights_(static_cast<std::size_t>(engine_->layout().elements)),
        own_gradients_(options.training ? own_weights_.size() : 0) {}

  [[nodiscard]] std::string name() const override { return engine_->name(); }
  [[nodiscard]] const graph::Graph& graph() const override { return engine_->graph(); }
  [[nodiscard]] const graph::Layout& layout() const override { return engine_->layout(); }
  [[nodiscard]] const graph::MemoryPlan& plan() const override { return engine_->plan(); }

  std::span<float> weights() override { return engine_->weights(); }
  base::Array gradients() override { return engine_->gradients(); }
  std::span<float> optimizer_state(int slot) override { return engine_->optimizer_state(slot); }
  void weights_changed() override { std::ranges::copy(weights(), own_weights_.begin()); }

  LossSums forward(const StepInput& input) override { return program_.forward(input, own_weights_); }
  void backward(const GradientReady& on_ready) override {
    std::int64_t done = 0;
    program_.backward(own_weights_, own_gradients_, [&](std::int64_t ready) {
      std::transform(own_gradients_.begin() + done, own_gradients_.begin() + ready,
                     gradients().host().begin() + done,
                     [](double gradient) { return static_cast<float>(gradient); });
      done = ready;
      if (on_ready) on_ready(ready);
    });
  }
  void update(const UpdateRule& rule, double lr, std::int64_t update) override {
    engine_->update(rule, lr, update);
    weights_changed();
  }
  double gradient_squares(std::int64_t begin, std::int64_t end) override {
    return engine_->gradient_squares(begin, end);
  }
  double gradient_norm() override { return engine_->gradient_norm(); }

  LossSums evaluate(std::span<const float> images, std::span<const std::int32_t> labels, int count, int views,
                    std::span<double> logits) override {
    return program_.evaluate(images, labels, count, views, own_weights_, logits);
  }
  void observe(OpObserver observer) override { program_.observe(std::move(observer)); }

 private:
  const std::unique_ptr<Engine> engine_;  ///< of which only the arrays, their update and the plan are used
  Program<double> program_;
  std::vector<double> own_weights_, own_gradients_;
};

/// Errors   those of compile()
[[nodiscard]] inline std::unique_ptr<Engine> compile_double(const graph::Graph& graph,
                                                            const CompileOptions& options) {
  return std::make_unique<DoubleEngine>(graph, options);
}

}  // namespace paceline::engine::reference
