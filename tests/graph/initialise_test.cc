#include "graph/initialise.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "graph/builder.h"
#include "graph/residual.h"
#include "graph/zoo.h"

namespace paceline::graph {
namespace {

struct Moments {
  double mean = 0, deviation = 0, largest = 0;
};

struct Initialised {
  Graph graph;
  Layout layout;
  std::vector<float> weights;

  Initialised(const std::string& model, Shape input, std::uint64_t seed)
      : graph(make_model(model, input, 10, 0)),
        layout(flat_layout(graph)),
        weights(static_cast<std::size_t>(layout.elements), -7.0f) {
    initialise(graph, layout, seed, weights);
  }
  [[nodiscard]] std::vector<float> part(const std::string& name) const {
    const auto found = std::ranges::find(graph.parameters, name, &Parameter::name);
    const Slot& slot = layout.slots[static_cast<std::size_t>(
        layout.slot_of_parameter[static_cast<std::size_t>(found - graph.parameters.begin())])];
    return {weights.begin() + slot.offset, weights.begin() + slot.offset + slot.elements};
  }
  [[nodiscard]] Moments moments(const std::string& name) const {
    Moments result;
    const auto values = part(name);
    for (const float value : values) {
      result.mean += value / static_cast<double>(values.size());
      result.largest = std::max(result.largest, std::abs(static_cast<double>(value)));
    }
    for (const float value : values)
      result.deviation += (value - result.mean) * (value - result.mean) / static_cast<double>(values.size());
    result.deviation = std::sqrt(result.deviation);
    return result;
  }
};

TEST(Initialise, DrawsResnetConvolutionsNormallyByFanOut) {
  const Initialised model("resnet18-cifar", {3, 32, 32}, 1);
  const Moments moments = model.moments("layer2.0.conv1.weight");  // 73,728 draws
  const double expected = std::sqrt(2.0 / (128 * 9));
  EXPECT_NEAR(moments.mean, 0, 5 * expected / std::sqrt(73728.0));
  EXPECT_NEAR(moments.deviation, expected, 5 * expected / std::sqrt(2 * 73728.0));
  EXPECT_GT(moments.largest, 3.5 * expected);  // a normal has tails
}

/// One convolution 3 -> `channels` (or a dense layer behind one of 3 -> 3), started as asked.
std::vector<float> started(Init init, int channels, std::uint64_t seed = 1) {
  Builder model("one");
  const int conv = model.conv2d(model.input({3, 8, 8}), "conv",
                                {.channels = channels, .kernel = 3, .padding = 1, .init = init});
  model.loss(model.dense(conv, "fc", {.features = 10}), 0);
  const Graph graph = model.finish();
  const Layout layout = flat_layout(graph);
  std::vector<float> weights(static_cast<std::size_t>(layout.elements), -7.0f);
  initialise(graph, layout, seed, weights);
  const Slot& slot = layout.slots[static_cast<std::size_t>(layout.slot_of_parameter[0])];
  return {weights.begin() + slot.offset, weights.begin() + slot.offset + slot.elements};
}

TEST(Initialise, DiracPassesChannelsOnAndDrawsTheOtherFilters) {
  for (const int channels : {2, 3, 5}) {
    const auto usual = started(Init::usual, channels), dirac = started(Init::dirac, channels);
    for (int k = 0; k < channels; ++k)
      for (int c = 0; c < 3; ++c)
        for (int tap = 0; tap < 9; ++tap) {
          const auto at = static_cast<std::size_t>((k * 3 + c) * 9 + tap);
          EXPECT_EQ(dirac[at], k >= 3 ? usual[at] : k == c && tap == 4 ? 1.0f : 0.0f) << k << c << tap;
        }
  }
}

TEST(Initialise, ZeroIsZero) { EXPECT_EQ(started(Init::zero, 4), std::vector<float>(4 * 27, 0.0f)); }

TEST(Initialise, DrawsPlainLayersUniformlyByFanIn) {
  const Initialised model("mnist-cnn", {1, 28, 28}, 1);
  for (const auto& [name, fan_in] : {std::pair{"conv2.weight", 288.0},
                                     {"conv2.bias", 288.0},
                                     {"fc1.weight", 9216.0},
                                     {"fc1.bias", 9216.0},
                                     {"fc2.weight", 128.0}}) {
    const double bound = 1 / std::sqrt(fan_in);
    const auto count = static_cast<double>(model.part(name).size());
    const Moments moments = model.moments(name);
    EXPECT_LE(moments.largest, bound) << name;
    EXPECT_GT(moments.largest, 0.9 * bound) << name;
    EXPECT_NEAR(moments.mean, 0, 5 * bound / std::sqrt(3 * count)) << name;
  }
}

TEST(Initialise, StartsBatchNormAsTheIdentity) {
  const Initialised model("resnet8-cifar", {3, 32, 32}, 1);
  for (const float value : model.part("bn1.weight")) EXPECT_EQ(value, 1);
  for (const float value : model.part("bn1.running_var")) EXPECT_EQ(value, 1);
  for (const float value : model.part("bn1.bias")) EXPECT_EQ(value, 0);
  for (const float value : model.part("bn1.running_mean")) EXPECT_EQ(value, 0);
}

TEST(Initialise, IsAFunctionOfTheSeed) {
  const Initialised one("mnist-cnn", {1, 28, 28}, 1), again("mnist-cnn", {1, 28, 28}, 1),
      other("mnist-cnn", {1, 28, 28}, 2);
  EXPECT_EQ(one.weights, again.weights);
  EXPECT_NE(one.part("fc1.weight"), other.part("fc1.weight"));
  EXPECT_NE(one.part("conv1.bias"), one.part("conv1.weight"));
}

TEST(Initialise, LeavesThePaddingZero) {
  const Initialised model("mnist-cnn", {1, 28, 28}, 1);
  std::vector<float> weights = model.weights;
  for (const Slot& slot : model.layout.slots) std::fill_n(weights.begin() + slot.offset, slot.elements, 0.0f);
  EXPECT_EQ(weights, std::vector<float>(weights.size(), 0.0f));
}

TEST(ZeroLastGammas, LetsEveryBlockBeginAsTheIdentity) {
  for (const char* name : {"resnet18", "resnet18-cifar", "resnet8-cifar"}) {
    Graph graph = make_model(name, {3, 32, 32}, 10, 0);
    int blocks = 0;
    for (const Node& node : graph.nodes) blocks += node.as<Add>() != nullptr ? 1 : 0;
    EXPECT_EQ(zero_last_gammas(graph), blocks) << name;
    for (const Node& node : graph.nodes) {
      const auto* norm = node.as<BatchNorm>();
      if (norm == nullptr) continue;
      // torchvision's zero_init_residual: bn2 of each basic block, and no shortcut's.
      const bool ends_branch = node.name.ends_with(".bn2");
      EXPECT_EQ(norm->init, ends_branch ? Init::zero : Init::usual) << node.name;
    }
    const Layout layout = flat_layout(graph);
    std::vector<float> weights(static_cast<std::size_t>(layout.elements));
    initialise(graph, layout, 0, weights);
    for (const Slot& slot : layout.slots) {
      const Parameter& parameter = graph.parameters[static_cast<std::size_t>(slot.parameter)];
      if (parameter.role != Role::norm_weight) continue;
      const float expected = parameter.name.ends_with(".bn2.weight") ? 0 : 1;
      for (std::int64_t i = 0; i < slot.elements; ++i)
        ASSERT_EQ(weights[static_cast<std::size_t>(slot.offset + i)], expected) << parameter.name;
    }
  }
  Graph plain = make_model("mnist-cnn", {1, 28, 28}, 10, 0);
  EXPECT_EQ(zero_last_gammas(plain), 0);
}

}  // namespace
}  // namespace paceline::graph
