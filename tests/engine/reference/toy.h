#pragma once

/// What the tests of engines share: small graphs with every op, random inputs, a reducer for worker threads.

#include <algorithm>
#include <barrier>
#include <cmath>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/rng.h"
#include "engine/engine.h"
#include "graph/initialise.h"
#include "graph/op_builder.h"
#include "graph/zoo.h"

namespace paceline::engine::toy {

/// Every op, small enough for double loops: 3x9x7 images in 4 classes that have weights.
inline graph::Graph every_op(double dropout = 0.3, double smoothing = 0.1) {
  graph::OpBuilder model("every-op");
  int value = model.conv2d(model.input({3, 9, 7}), "conv1", {.channels = 6, .padding = 1});
  value = model.batch_norm(value, "bn1");
  const int trunk = model.relu(value);
  int branch = model.conv2d(trunk, "conv2", {.channels = 6, .padding = 1, .bias = true});
  branch = model.gelu(model.batch_norm(branch, "bn2"));
  value = model.add(branch, trunk);
  value = model.max_pool(value, {.kernel = 3, .stride = 2, .padding = 1});
  value = model.adaptive_average_pool(value, {4, 3});
  value = model.pad(value, {.top = -1, .bottom = 1, .left = 1});
  value = model.average_pool(value, {.kernel = 2, .stride = 2});
  value = model.dense(model.layer_norm(value, "ln"), "mlp", {.features = 6, .flatten = false});
  value = model.scale(model.group_norm(value, "gn", {.groups = 2}), "ls", {.initial = 0.5});
  if (dropout > 0) value = model.dropout(value, {.probability = dropout});
  int hidden = model.dense(value, "hidden", {.features = 6});
#define PACELINE_APPLY(Op, op) hidden = model.op(hidden);
  PACELINE_ELEMENTWISE_OPS(PACELINE_APPLY)
#undef PACELINE_APPLY
  value = model.mul(value, hidden);  // a factor for each channel
  const int front = model.slice(value, {.channels = 2}),
            back = model.slice(value, {.begin = 2, .channels = 4});
  value = model.channel_shuffle(model.concat({back, front}), 3);
  value = model.stochastic_depth(value, {.probability = dropout});
  int tokens = model.position(model.class_token(value, "token"), "place");
  tokens = model.attention(model.concat({tokens, model.tanh(tokens), model.silu(tokens)}), 2);
  value = model.add(model.global_average_pool(value), model.first_place(tokens));
  value = model.add(hidden, value);
  value = model.dense(value, "fc", {.features = 4});
  model.loss(value, smoothing);
  auto graph = model.finish();
  graph::set_class_weights(graph, {0.5, 1.75, 1, 1.25});
  return graph;
}

/// A block of a ConvNeXt, and a group norm, for 3x9x7 images in 4 classes.
inline graph::Graph sample_norms(int channels = 24) {
  graph::OpBuilder model("sample-norms");
  int value = model.conv2d(model.input({3, 9, 7}), "stem",
                           {.channels = channels, .kernel = 2, .stride = 2, .bias = true});
  const int trunk = model.layer_norm(value, "stem.norm");
  value = model.conv2d(trunk, "depthwise", {.channels = channels, .padding = 1, .groups = channels});
  value = model.dense(model.layer_norm(value, "norm"), "widen", {.features = 2 * channels, .flatten = false});
  value = model.dense(model.gelu(value), "narrow", {.features = channels, .flatten = false});
  value = model.stochastic_depth(model.scale(value, "scale", {.initial = 0.5}), {.probability = 0.2});
  value = model.group_norm(model.add(value, trunk), "groups", {.groups = channels % 4 == 0 ? 4 : 1});
  value = model.layer_norm(model.global_average_pool(value), "last");
  model.loss(model.dense(value, "fc", {.features = 4}), 0.1);
  return model.finish();
}

/// `count` images with labels, the samples first .. first + count - 1 of one endless random set.
struct Samples {
  std::vector<float> images;
  std::vector<std::int32_t> labels;
  std::vector<base::SecondLabel> second_labels;  ///< empty: one label each

  Samples(const graph::Graph& graph, std::int64_t first, int count, bool has_two_labels = false) {
    for (std::int64_t position = first; position < first + count; ++position) {
      base::Rng rng(1, base::Purpose::test, static_cast<std::uint64_t>(position));
      for (std::int64_t i = 0; i < graph.input_shape().elements(); ++i) images.push_back(rng.normal());
      const auto label = [&] {
        return static_cast<std::int32_t>(rng.below(static_cast<std::uint32_t>(graph.classes())));
      };
      labels.push_back(label());
      if (has_two_labels) second_labels.push_back({.label = label(), .weight = rng.uniform()});
    }
  }
  [[nodiscard]] StepInput step(double gradient_scale, std::uint64_t step = 0, std::int64_t first = 0) const {
    return {.images = images,
            .labels = labels,
            .gradient_scale = gradient_scale,
            .step = step,
            .first_position = first,
            .second_labels = second_labels};
  }
};

inline void initialise(Engine& engine, std::uint64_t seed) {
  graph::initialise(engine.graph(), engine.layout(), seed, engine.weights());
  engine.set_loss_scale({.scale = 64});  // at which no gradient of these models overflows
  engine.weights_changed();
}

inline std::vector<float> copy(std::span<const float> values) { return {values.begin(), values.end()}; }
/// Wherever it lies.
inline std::vector<float> copy(base::Array array) {
  std::vector<float> values(array.size);
  array.memory->read(array, values);
  return values;
}

/// The largest difference between the gradient of the bias `name` and central differences of the loss, over
/// the largest gradient. For engines whose gradients are on the host in PyTorch's order.
inline double error_of_bias_gradient(Engine& engine, const StepInput& input, const std::string& name) {
  const auto& layout = engine.layout();
  const auto slot = std::ranges::find_if(layout.slots, [&](const graph::Slot& one) {
    return engine.graph().parameters[static_cast<std::size_t>(one.parameter)].name == name;
  });
  (void)engine.forward(input);
  engine.backward([](std::int64_t) {});
  const auto gradients = copy(engine.gradients());
  double error = 0, largest = 0;
  for (auto i = static_cast<std::size_t>(slot->offset);
       i < static_cast<std::size_t>(slot->offset + slot->elements); ++i) {
    const auto loss_at = [&](float weight) {
      engine.fetch();
      engine.weights()[i] = weight;
      engine.weights_changed();
      return engine.forward(input).loss;
    };
    const float at = engine.weights()[i], above = at + 0.01f, below = at - 0.01f;
    const double slope = (loss_at(above) - loss_at(below)) / static_cast<double>(above - below);
    (void)loss_at(at);
    const double want = slope * input.gradient_scale, got = static_cast<double>(gradients[i]);
    error = std::max(error, std::abs(got - want));
    largest = std::max(largest, std::abs(want));
  }
  return error / largest;
}

/// Adds the spans of all worker threads, in rank order; everybody gets the same bits.
class Reducer {
 public:
  explicit Reducer(int workers) : inputs_(static_cast<std::size_t>(workers)), barrier_(workers) {}
  void sum(int rank, std::span<double> values) {
    inputs_[static_cast<std::size_t>(rank)].assign(values.begin(), values.end());
    barrier_.arrive_and_wait();
    std::ranges::fill(values, 0.0);
    for (const auto& input : inputs_)
      for (std::size_t i = 0; i < values.size(); ++i) values[i] += input[i];
    barrier_.arrive_and_wait();
  }

 private:
  std::vector<std::vector<double>> inputs_;
  std::barrier<> barrier_;
};

}  // namespace paceline::engine::toy
