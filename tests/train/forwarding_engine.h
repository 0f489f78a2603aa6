#pragma once

/// An engine that hands every call on to another: tests derive from it what goes wrong. Steps in a queue go
/// past forward(), backward() aside.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "engine/engine.h"

namespace paceline::train {

class ForwardingEngine : public engine::Engine {
 public:
  explicit ForwardingEngine(std::unique_ptr<engine::Engine> engine) : engine_(std::move(engine)) {}
  std::span<float> optimizer_state(int slot) override { return engine_->optimizer_state(slot); }
  std::string name() const override { return engine_->name(); }
  const graph::Graph& graph() const override { return engine_->graph(); }
  const graph::Layout& layout() const override { return engine_->layout(); }
  const graph::MemoryPlan& plan() const override { return engine_->plan(); }
  std::span<float> weights() override { return engine_->weights(); }
  base::Array gradients() override { return engine_->gradients(); }
  void fetch() override { engine_->fetch(); }
  void weights_changed() override { engine_->weights_changed(); }
  void warm_up(const engine::WarmUp& coming) override { engine_->warm_up(coming); }
  engine::LossSums forward(const engine::StepInput& input) override { return engine_->forward(input); }
  void backward(const engine::GradientReady& on_ready) override { engine_->backward(on_ready); }
  void update(const engine::UpdateRule& rule, double lr, std::int64_t update) override {
    engine_->update(rule, lr, update);
  }
  double gradient_squares(std::int64_t begin, std::int64_t end) override {
    return engine_->gradient_squares(begin, end);
  }
  engine::LossSums evaluate(std::span<const float> images, std::span<const std::int32_t> labels, int count,
                            int views, std::span<double> logits) override {
    return engine_->evaluate(images, labels, count, views, logits);
  }
  void set_byte_values(std::span<const float> values) override { engine_->set_byte_values(values); }
  void store_images(std::int64_t first, std::span<const std::uint8_t> pixels) override {
    engine_->store_images(first, pixels);
  }
  engine::LossSums evaluate_draws(std::span<const base::SampleDraw> draws,
                                  std::span<const std::int32_t> labels, int count, int views,
                                  std::span<double> logits) override {
    return engine_->evaluate_draws(draws, labels, count, views, logits);
  }
  engine::StepQueue* step_queue() override { return engine_->step_queue(); }
  void cut_backward(std::span<const std::int64_t> ends) override { engine_->cut_backward(ends); }
  void observe(engine::OpObserver observer) override { engine_->observe(std::move(observer)); }

 private:
  std::unique_ptr<engine::Engine> engine_;
};

}  // namespace paceline::train
