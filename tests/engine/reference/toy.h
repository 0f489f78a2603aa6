#pragma once

/// What the tests of engines share: small graphs with every op, random inputs, a reducer for worker threads.

#include <algorithm>
#include <barrier>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/rng.h"
#include "engine/engine.h"
#include "graph/initialise.h"
#include "graph/zoo.h"

namespace paceline::engine::toy {

/// Every op, small enough for double loops: 3x9x7 images in 4 classes that have weights.
inline graph::Graph every_op(double dropout = 0.3, double smoothing = 0.1) {
  graph::Builder model("every-op");
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
  graph::Builder model("sample-norms");
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

  Samples(const graph::Graph& graph, std::int64_t first, int count) {
    for (std::int64_t position = first; position < first + count; ++position) {
      base::Rng rng(1, base::Purpose::test, static_cast<std::uint64_t>(position));
      for (std::int64_t i = 0; i < graph.input_shape().elements(); ++i) images.push_back(rng.normal());
      labels.push_back(static_cast<std::int32_t>(rng.below(static_cast<std::uint32_t>(graph.classes()))));
    }
  }
  [[nodiscard]] StepInput step(double gradient_scale, std::uint64_t step = 0, std::int64_t first = 0) const {
    return {.images = images,
            .labels = labels,
            .gradient_scale = gradient_scale,
            .step = step,
            .first_position = first};
  }
};

inline void initialise(Engine& engine, std::uint64_t seed) {
  graph::initialise(engine.graph(), engine.layout(), seed, engine.weights());
  engine.weights_changed();
}

inline std::vector<float> copy(std::span<const float> values) { return {values.begin(), values.end()}; }
/// Wherever it lies.
inline std::vector<float> copy(base::Array array) {
  std::vector<float> values(array.size);
  array.memory->read(array, values);
  return values;
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
