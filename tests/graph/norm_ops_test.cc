// Layer norm, group norm, learned factors, dense layers at each place: what the graph knows of them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "base/error.h"
#include "graph/initialise.h"
#include "graph/op_builder.h"
#include "graph/ops.h"
#include "graph/plan.h"
#include "graph/zoo.h"

namespace paceline::graph {
namespace {

using Builder = OpBuilder;

using testing::ElementsAre;
using testing::HasSubstr;

constexpr const char* kBlock = R"(
[[layer]]
op = "conv2d"
name = "stem"
channels = 8
bias = true
init = "normal"
[[layer]]
op = "layer_norm"
name = "norm"
epsilon = 1e-6
[[layer]]
op = "dense"
name = "widen"
features = 12
flatten = false
init = "normal"
[[layer]]
op = "group_norm"
name = "groups"
groups = 3
[[layer]]
op = "scale"
name = "factor"
initial = 1e-6
weight_rate = 2
[[layer]]
op = "dense"
name = "fc"
features = "classes"
)";

Graph block() { return parse_model(kBlock, "block.toml", {3, 7, 6}, 4, 0); }

TEST(NormOps, HaveThePyTorchParametersAndShapes) {
  const Graph graph = block();
  std::vector<std::string> names;
  for (const Parameter& parameter : graph.parameters) {
    std::string name = parameter.name;
    for (const auto extent : parameter.shape) name += " " + std::to_string(extent);
    names.push_back(name);
  }
  EXPECT_THAT(names, ElementsAre("stem.weight 8 3 3 3", "stem.bias 8", "norm.weight 8", "norm.bias 8",
                                 "widen.weight 12 8", "widen.bias 12", "groups.weight 12", "groups.bias 12",
                                 "factor.weight 12 1 1", "fc.weight 4 240", "fc.bias 4"));
  EXPECT_EQ(graph.nodes[3].shape, (Shape{12, 5, 4}));
  EXPECT_EQ(graph.nodes[5].shape, (Shape{12, 5, 4}));
  EXPECT_EQ(graph.nodes[2].as<LayerNorm>()->epsilon, 1e-6);
  EXPECT_EQ(graph.parameters[8].rate, 2);
  EXPECT_EQ(multiply_adds(graph, 3), 12 * 8 * 5 * 4);
  EXPECT_EQ(multiply_adds(graph, 6), 4 * 240);
  Builder flat("flat");
  const int factors = flat.scale(flat.input({6, 2, 2}), "s", {.dimensions = 1});
  flat.loss(flat.dense(factors, "fc", {.features = 2}), 0);
  EXPECT_THAT(flat.finish().parameters.front().shape, ElementsAre(6));
}

TEST(NormOps, StartAsConvNextDoes) {
  const Graph graph = block();
  const Layout layout = flat_layout(graph);
  std::vector<float> weights(static_cast<std::size_t>(layout.elements), -7.0f);
  initialise(graph, layout, 5, weights);
  const auto part = [&](std::size_t parameter) {
    const Slot& slot = layout.slots[static_cast<std::size_t>(layout.slot_of_parameter[parameter])];
    return std::vector<float>(weights.begin() + slot.offset, weights.begin() + slot.offset + slot.elements);
  };
  for (const std::size_t drawn : {0, 4}) {  // stem.weight, widen.weight: deviation 0.02
    double squares = 0;
    for (const float value : part(drawn)) squares += static_cast<double>(value) * static_cast<double>(value);
    EXPECT_NEAR(std::sqrt(squares / static_cast<double>(part(drawn).size())), 0.02, 0.005) << drawn;
  }
  for (const std::size_t zero : {1, 3, 5, 7}) EXPECT_THAT(part(zero), testing::Each(0.0f)) << zero;
  for (const std::size_t one : {2, 6}) EXPECT_THAT(part(one), testing::Each(1.0f)) << one;
  EXPECT_THAT(part(8), testing::Each(1e-6f));
  EXPECT_THAT(part(10), testing::Not(testing::Each(0.0f))) << "a bias without init \"normal\"";
}

TEST(NormOps, AreMadeForOtherImages) {
  Builder model("each");
  int value =
      model.dense(model.layer_norm(model.input({3, 8, 8}), "n"), "d", {.features = 5, .flatten = false});
  model.loss(model.dense(model.global_average_pool(value), "fc", {.features = 2}), 0);
  const Graph graph = model.finish();
  const auto larger = for_input(graph, {3, 12, 10});
  ASSERT_TRUE(larger.has_value());
  EXPECT_EQ(larger->nodes[2].shape, (Shape{5, 12, 10}));
}

TEST(NormOps, RefuseWhatTheyCannotDo) {
  const auto refusal = [](const auto& add) -> std::string {
    Builder model("m");
    try {
      add(model, model.input({6, 4, 4}));
    } catch (const base::Error& error) {
      return error.what();
    }
    return "taken";
  };
  EXPECT_THAT(refusal([](Builder& m, int x) { m.group_norm(x, "g", {.groups = 4}); }),
              HasSubstr("group_norm 'g': groups must divide the 6 channels of its input, but is 4"));
  EXPECT_THAT(refusal([](Builder& m, int x) { m.group_norm(x, "g", {.epsilon = 0}); }),
              HasSubstr("group_norm 'g': epsilon must be above 0"));
  EXPECT_THAT(refusal([](Builder& m, int x) { m.layer_norm(x, "l", {.epsilon = -1}); }),
              HasSubstr("layer_norm 'l': epsilon must be above 0, but is -1"));
  EXPECT_THAT(refusal([](Builder& m, int x) {
                m.layer_norm(x, "l", {.rates = {-1, 1}});
              }),
              HasSubstr("factors of the learning rate"));
  EXPECT_THAT(refusal([](Builder& m, int x) { m.scale(x, "s", {.dimensions = 2}); }),
              HasSubstr("scale 's': dimensions must be 3"));
}

}  // namespace
}  // namespace paceline::graph
