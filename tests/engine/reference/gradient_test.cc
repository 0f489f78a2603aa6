// Every op's gradient against central finite differences, in double: the oracle that the reference rests on.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "base/rng.h"
#include "engine/reference/program.h"
#include "graph/all_ops.h"
#include "graph/initialise.h"
#include "graph/layout.h"
#include "graph/op_builder.h"
#include "graph/ops.h"
#include "graph/zoo.h"

namespace paceline::engine::reference {
namespace {

using Builder = graph::OpBuilder;
using graph::Graph;
using graph::Shape;

struct GradientCase {
  std::string name;
  int batch;
  std::function<Graph()> make;
  BatchNormMode batch_norm = BatchNormMode::local;
  int ghost_size = 0;
  bool has_two_labels = false;
};

std::vector<float> random_images(std::int64_t count, std::uint64_t seed) {
  base::Rng rng(seed, base::Purpose::test);
  std::vector<float> images(static_cast<std::size_t>(count));
  std::ranges::generate(images, [&] { return rng.normal(); });
  return images;
}

/// A 1x1 convolution in front gives the op under test a source that depends on weights; a dense layer behind
/// gives every element of its output a weight of its own.
Graph around(Shape input, int channels, const std::function<int(Builder&, int)>& op, double smoothing = 0) {
  Builder model("test");
  int value = model.conv2d(model.input(input), "before", {.channels = channels, .kernel = 1, .bias = true});
  value = op(model, value);
  model.loss(model.dense(value, "after", {.features = 4}), smoothing);
  return model.finish();
}

GradientCase conv(int batch, Shape input, graph::Conv2d attributes) {
  return {"Conv" + text(attributes.kernel) + "Stride" + text(attributes.stride) + "Padding" +
              text(attributes.padding) + "Dilation" + text(attributes.dilation) +
              (attributes.bias ? "Bias" : "NoBias") + "Batch" + std::to_string(batch),
          batch, [=] {
            return around(input, 2,
                          [=](Builder& model, int value) { return model.conv2d(value, "op", attributes); });
          }};
}

GradientCase unary(std::string name, int batch, Shape input, std::function<int(Builder&, int)> op) {
  return {std::move(name), batch, [=] { return around(input, 3, op); }};
}

/// Groups of channels, and ops that join, take apart or multiply values.
std::vector<GradientCase> cases_of_channels() {
  return {
      unary("Conv2dInTwoGroups", 3, {4, 5, 4},
            [](Builder& model, int value) {
              const int four = model.concat({model.slice(value, {.channels = 1}), value});
              return model.conv2d(four, "op", {.channels = 6, .padding = 1, .groups = 2, .bias = true});
            }),
      unary("Conv2dDepthwise", 3, {2, 6, 5},
            [](Builder& model, int value) {
              return model.conv2d(value, "op", {.channels = 3, .stride = 2, .padding = 1, .groups = 3});
            }),
      unary("MulOfOneShape", 3, {2, 3, 5},
            [](Builder& model, int value) {
              return model.mul(model.conv2d(model.tanh(value), "op", {.channels = 3, .padding = 1}), value);
            }),
      unary("MulByAFactorForEachChannel", 3, {2, 3, 5},
            [](Builder& model, int value) {
              const int factor = model.sigmoid(model.global_average_pool(value));
              return model.mul(value, factor);
            }),
      unary("MulByItself", 1, {2, 3, 5}, [](Builder& model, int value) { return model.mul(value, value); }),
      unary("Concat", 3, {2, 3, 5},
            [](Builder& model, int value) {
              const int other = model.conv2d(value, "op", {.channels = 2, .padding = 1});
              return model.concat({value, model.tanh(value), other, value});
            }),
      unary("Slices", 3, {2, 3, 5},
            [](Builder& model, int value) {
              const int last = model.slice(value, {.begin = 1, .channels = 2});
              return model.add(last, model.slice(value, {.begin = 0, .channels = 2}));
            }),
      unary("ChannelShuffle", 3, {2, 3, 5},
            [](Builder& model, int value) {
              const int six = model.concat({value, model.tanh(value)});
              return model.channel_shuffle(six, 2);
            }),
      unary("Pad", 3, {2, 4, 5},
            [](Builder& model, int value) {
              return model.pad(model.tanh(value),
                               {.top = 1, .bottom = -2, .left = -1, .right = 2, .front = -1, .back = 2});
            }),
      unary("StochasticDepth", 5, {2, 3, 5}, [](Builder& model, int value) {
        return model.add(model.stochastic_depth(model.tanh(value), {.probability = 0.4}), value);
      })};
}

/// Ops that normalise or scale each sample by itself, and dense layers at each place.
std::vector<GradientCase> cases_of_norms() {
  const auto six = [](Builder& model, int value) { return model.concat({value, model.tanh(value)}); };
  return {unary("LayerNorm", 3, {2, 3, 5},
                [](Builder& model, int value) { return model.layer_norm(value, "op"); }),
          unary("LayerNormOfFeatures", 1, {2, 3, 5},
                [=](Builder& model, int value) {
                  return model.layer_norm(model.global_average_pool(six(model, value)), "op",
                                          {.epsilon = 0.1});
                }),
          unary("GroupNormOfAllChannels", 3, {2, 3, 5},
                [](Builder& model, int value) { return model.group_norm(value, "op", {}); }),
          unary("GroupNormOfTwoGroups", 2, {2, 3, 5},
                [=](Builder& model, int value) {
                  return model.group_norm(six(model, value), "op", {.groups = 2, .epsilon = 0.01});
                }),
          unary("GroupNormOfEachChannel", 1, {2, 3, 5},
                [](Builder& model, int value) { return model.group_norm(value, "op", {.groups = 3}); }),
          unary("Scale", 3, {2, 3, 5},
                [](Builder& model, int value) { return model.scale(value, "op", {.initial = 0.5}); }),
          unary("DenseAtEachPlace", 3, {2, 3, 5},
                [](Builder& model, int value) {
                  return model.dense(value, "op", {.features = 5, .flatten = false});
                }),
          unary("DenseAtEachPlaceWithoutBias", 1, {2, 3, 5}, [](Builder& model, int value) {
            return model.dense(value, "op", {.features = 2, .bias = false, .flatten = false});
          })};
}

/// Attention of `heads` heads, over values that an odd function made of each other.
GradientCase attention(std::string name, int batch, Shape input, int channels, int heads) {
  return unary(std::move(name), batch, input, [=](Builder& model, int value) {
    value = model.conv2d(model.tanh(value), "qkv", {.channels = 3 * channels, .kernel = 1, .bias = true});
    return model.attention(value, heads);
  });
}

/// Ops on tokens.
std::vector<GradientCase> cases_of_tokens() {
  return {
      unary("Position", 3, {2, 3, 5}, [](Builder& model, int value) { return model.position(value, "op"); }),
      unary("ClassToken", 3, {2, 3, 5},
            [](Builder& model, int value) { return model.tanh(model.class_token(value, "op")); }),
      unary("ClassTokenAlone", 3, {2, 3, 5},
            [](Builder& model, int value) {
              value = model.position(model.class_token(model.tanh(value), "op"), "place");
              value = model.attention(model.conv2d(value, "qkv", {.channels = 9, .kernel = 1}), 3);
              return model.first_place(value);
            }),
      unary("FirstPlace", 3, {2, 3, 5},
            [](Builder& model, int value) { return model.first_place(model.tanh(value)); }),
      attention("AttentionOfOnePlace", 3, {2, 1, 1}, 4, 2),
      attention("AttentionOfTwoPlaces", 1, {2, 1, 2}, 1, 1),
      attention("AttentionOfOneHead", 2, {2, 3, 5}, 5, 1),
      attention("AttentionOfThreeHeads", 2, {2, 17, 1}, 9, 3)};
}

/// The loss with label smoothing, weights of classes, and both.
std::vector<GradientCase> cases_of_loss() {
  const auto loss = [](double smoothing, const std::vector<double>& weights) {
    return [=] {
      auto graph = around(
          {2, 3, 5}, 3, [](Builder& model, int value) { return model.gelu(value); }, smoothing);
      if (!weights.empty()) graph::set_class_weights(graph, weights);
      return graph;
    };
  };
  const std::vector<double> weights{0.3, 2.5, 1, 0.7};
  return {{"LabelSmoothing", 3, loss(0.1, {})},
          {"ClassWeights", 5, loss(0, weights)},
          {"ClassWeightsAndLabelSmoothing", 5, loss(0.2, weights)},
          {.name = "TwoLabels", .batch = 5, .make = loss(0, {}), .has_two_labels = true},
          {.name = "TwoLabelsClassWeightsAndLabelSmoothing",
           .batch = 5,
           .make = loss(0.2, weights),
           .has_two_labels = true}};
}

std::vector<GradientCase> cases() {
  const auto norm = [](Builder& model, int value) { return model.batch_norm(value, "op"); };
  std::vector<GradientCase> all = {
      conv(1, {2, 5, 7}, {.channels = 3, .kernel = 1}),
      conv(3, {2, 5, 7}, {.channels = 3, .kernel = 1, .stride = 2, .bias = true}),
      conv(1, {2, 5, 7}, {.channels = 3, .kernel = 3, .bias = true}),
      conv(3, {2, 5, 7}, {.channels = 3, .kernel = 3, .padding = 1}),
      conv(3, {2, 6, 5}, {.channels = 3, .kernel = 3, .stride = 2, .padding = 1, .bias = true}),
      conv(1, {1, 9, 8}, {.channels = 2, .kernel = 7, .stride = 2, .padding = 3}),
      conv(3, {1, 7, 7}, {.channels = 2, .kernel = 7, .bias = true}),
      conv(3, {2, 5, 7}, {.channels = 3, .kernel = {1, 5}, .padding = {0, 2}}),
      conv(1, {2, 6, 5},
           {.channels = 3, .kernel = {3, 2}, .stride = {2, 1}, .padding = {1, 0}, .bias = true}),
      conv(1, {2, 6, 7}, {.channels = 3, .padding = 2, .dilation = 2}),
      conv(3, {2, 4, 9},
           {.channels = 3, .kernel = {2, 3}, .stride = {1, 2}, .padding = {0, 5}, .dilation = {3, 4}}),
      unary("DenseOverAnImage", 3, {2, 3, 5},
            [](Builder& model, int value) { return model.dense(value, "op", {.features = 5}); }),
      unary(
          "DenseWithoutBias", 1, {2, 3, 1},
          [](Builder& model, int value) { return model.dense(value, "op", {.features = 5, .bias = false}); }),
      unary("BatchNormLocal", 3, {2, 3, 5}, norm),
      unary("BatchNormOfOneSample", 1, {2, 5, 3}, norm),
      unary("BatchNormFrozen", 3, {2, 3, 5},
            [](Builder& model, int value) {
              return model.batch_norm(value, "op", {.epsilon = 0.1, .is_frozen = true});
            }),
#define PACELINE_CASE(Op, op) \
  unary(#Op, 3, {2, 3, 5}, [](Builder& model, int value) { return model.op(value); }),
      PACELINE_ELEMENTWISE_OPS(PACELINE_CASE)
#undef PACELINE_CASE
          unary("MaxPool", 3, {2, 6, 5}, [](Builder& model, int value) { return model.max_pool(value, {}); }),
      unary("MaxPoolOverlappingWithPadding", 1, {2, 7, 5},
            [](Builder& model, int value) {
              return model.max_pool(value, {.kernel = 3, .stride = 2, .padding = 1});
            }),
      unary("AveragePool", 3, {2, 6, 5},
            [](Builder& model, int value) { return model.average_pool(value, {}); }),
      unary("AveragePoolOverlappingWithPadding", 1, {2, 7, 5},
            [](Builder& model, int value) {
              return model.average_pool(value, {.kernel = 3, .stride = 2, .padding = 1});
            }),
      unary("MaxPoolRoundedUp", 3, {2, 6, 5},
            [](Builder& model, int value) {
              return model.max_pool(value, {.kernel = {3, 2}, .stride = {2, 3}, .ceil = true});
            }),
      unary("AveragePoolRoundedUpWithPadding", 3, {2, 6, 5},
            [](Builder& model, int value) {
              return model.average_pool(value,
                                        {.kernel = {3, 2}, .stride = 2, .padding = {1, 1}, .ceil = true});
            }),
      unary("AveragePoolThatCountsNoPadding", 1, {2, 7, 5},
            [](Builder& model, int value) {
              return model.average_pool(
                  value, {.kernel = 3, .stride = 1, .padding = {1, 0}, .count_padding = false});
            }),
      unary("AdaptiveAveragePool", 3, {2, 7, 5},
            [](Builder& model, int value) {
              return model.adaptive_average_pool(value, {3, 2});
            }),
      unary("AdaptiveAveragePoolToMoreThanThereIs", 1, {2, 2, 5},
            [](Builder& model, int value) {
              return model.adaptive_average_pool(value, {3, 7});
            }),
      unary("GlobalAveragePool", 3, {2, 3, 5},
            [](Builder& model, int value) { return model.global_average_pool(value); }),
      unary("AddOfASharedBranch", 3, {2, 3, 5},
            [](Builder& model, int value) {
              const int branch = model.conv2d(model.gelu(value), "op", {.channels = 3, .padding = 1});
              const int sum = model.add(branch, value);
              return model.add(sum, sum);  // one value as both inputs: its gradient arrives twice
            }),
      unary("Dropout", 3, {2, 3, 5},
            [](Builder& model, int value) { return model.dropout(value, {.probability = 0.4}); }),
      {"BatchNormGhost", 6,
       [=] {
         return around({2, 3, 5}, 3, norm);
       },
       BatchNormMode::ghost, 2},
      {"BatchNormGhostOfOne", 3,
       [=] {
         return around({2, 3, 5}, 3, norm);
       },
       BatchNormMode::ghost, 1},
      {"BatchNormSynchronisedAlone", 3,
       [=] {
         return around({2, 3, 5}, 3, norm);
       },
       BatchNormMode::synchronised},
  };
  std::ranges::move(cases_of_channels(), std::back_inserter(all));
  std::ranges::move(cases_of_norms(), std::back_inserter(all));
  std::ranges::move(cases_of_loss(), std::back_inserter(all));
  std::ranges::move(cases_of_tokens(), std::back_inserter(all));
  return all;
}

class Gradient : public testing::TestWithParam<GradientCase> {};

// Every element of every parameter, f(w+h) - f(w-h) over 2h with h = 1e-6: truncation is O(h^2), rounding
// O(1e-16 / h), so 1e-7 absolute on gradients of order 0.1 leaves a margin of ten and catches any wrong term.
TEST_P(Gradient, IsTheSlopeOfTheLoss) {
  const GradientCase& test = GetParam();
  const Graph graph = test.make();
  const graph::Layout layout = graph::flat_layout(graph);
  Program<double> program(graph, layout,
                          {.batch = test.batch,
                           .batch_norm = test.batch_norm,
                           .ghost_size = test.ghost_size,
                           .seed = 7,
                           .has_two_labels = test.has_two_labels});

  std::vector<float> start(static_cast<std::size_t>(layout.elements));
  graph::initialise(graph, layout, 3, start);
  std::vector<double> weights(start.begin(), start.end());
  base::Rng rng(5, base::Purpose::test);
  for (const graph::Slot& slot : layout.slots)  // batch norm's 1 and 0 would hide a mix-up of the two
    for (std::int64_t i = 0; i < slot.elements; ++i)
      weights[static_cast<std::size_t>(slot.offset + i)] += 0.2 * rng.normal();

  const auto images = random_images(test.batch * graph.input_shape().elements(), 11);
  std::vector<std::int32_t> labels;
  for (int n = 0; n < test.batch; ++n) labels.push_back(n % graph.classes());
  std::vector<base::SecondLabel> second_labels;  // of every weight, and once the first label again
  for (int n = 0; test.has_two_labels && n < test.batch; ++n)
    second_labels.push_back({.label = (n * 2) % graph.classes(), .weight = 0.25f * static_cast<float>(n)});
  const double scale = 1.0 / 8;
  const StepInput input{.images = images,
                        .labels = labels,
                        .gradient_scale = scale,
                        .step = 3,
                        .first_position = 20,
                        .second_labels = second_labels};

  std::vector<double> gradients(weights.size(), -1.0);
  program.forward(input, weights);
  program.backward(weights, gradients, {});

  const double h = 1e-6;
  double largest = 0;
  for (const graph::Slot& slot : layout.slots) {
    const graph::Parameter& parameter = graph.parameters[static_cast<std::size_t>(slot.parameter)];
    if (!graph::is_trainable(parameter.role)) continue;
    for (std::int64_t i = slot.offset; i < slot.offset + slot.elements; ++i) {
      double& w = weights[static_cast<std::size_t>(i)];
      const double at = w;
      w = at + h;
      program.forward(input, weights);
      const double above = program.exact_loss();
      w = at - h;
      program.forward(input, weights);
      const double below = program.exact_loss();
      w = at;
      const double slope = (above - below) / (2 * h) * scale;
      EXPECT_NEAR(gradients[static_cast<std::size_t>(i)], slope, 1e-7)
          << parameter.name << " element " << i - slot.offset;
      largest = std::max(largest, std::abs(slope));
    }
  }
  EXPECT_GT(largest, 1e-3) << "the case must have a gradient to test";
}

TEST(GradientCases, HaveEveryOp) {
  std::set<std::string_view> tested;
  for (const GradientCase& test : cases())
    for (const graph::Node& node : test.make().nodes) tested.insert(graph::rule_of(node.op).kind);
  for (const graph::Attributes& op : graph::all_ops())
    EXPECT_TRUE(tested.contains(graph::rule_of(op).kind))
        << "cases() has no " << graph::rule_of(op).kind << ": its gradient is not tested";
}

INSTANTIATE_TEST_SUITE_P(Ops, Gradient, testing::ValuesIn(cases()),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace paceline::engine::reference
