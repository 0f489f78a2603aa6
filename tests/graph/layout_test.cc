#include "graph/layout.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "graph/all_ops.h"
#include "graph/ops.h"
#include "graph/zoo.h"

namespace paceline::graph {
namespace {

using testing::StartsWith;

TEST(Layout, CoversEveryParameterOnceWithoutOverlap) {
  for (const std::string& name : models_in_code()) {
    const Graph graph = make_model(name, {3, 32, 32}, 10, 0);
    const Layout layout = flat_layout(graph);
    ASSERT_EQ(layout.slots.size(), graph.parameters.size());
    std::vector<int> seen(graph.parameters.size());
    std::int64_t end = 0;
    for (std::size_t i = 0; i < layout.slots.size(); ++i) {
      const Slot& slot = layout.slots[i];
      const auto parameter = static_cast<std::size_t>(slot.parameter);
      EXPECT_GE(slot.offset, end);
      EXPECT_LT(slot.offset, end + 16);
      EXPECT_EQ(slot.offset % 16, 0);
      EXPECT_EQ(slot.elements, graph.parameters[parameter].elements());
      EXPECT_EQ(layout.slot_of_parameter[parameter], static_cast<int>(i));
      ++seen[parameter];
      end = slot.offset + slot.elements;
    }
    EXPECT_GE(layout.elements, end);
    EXPECT_LT(layout.elements, end + 16);
    EXPECT_EQ(layout.elements % 16, 0);
    EXPECT_EQ(seen, std::vector<int>(graph.parameters.size(), 1));
  }
}

TEST(Layout, FollowsTheBackwardPass) {
  const Graph graph = make_model("resnet18-cifar", {3, 32, 32}, 10, 0);
  const Layout layout = flat_layout(graph);
  int last_node = static_cast<int>(graph.nodes.size());
  for (const Slot& slot : layout.slots) {
    const int node = graph.parameters[static_cast<std::size_t>(slot.parameter)].node;
    EXPECT_LE(node, last_node);
    last_node = node;
  }
  EXPECT_EQ(graph.parameters[static_cast<std::size_t>(layout.slots.front().parameter)].name, "fc.weight");
  EXPECT_EQ(graph.parameters[static_cast<std::size_t>(layout.slots.back().parameter)].name, "conv1.weight");
}

}  // namespace

// What makes two graphs the same model.

namespace {

Graph model(const std::string& name, int classes = 10, double smoothing = 0) {
  return make_model(name, {3, 32, 32}, classes, smoothing);
}

TEST(Fingerprint, IsThatOfTheLayersAndOfNothingElse) {
  EXPECT_EQ(fingerprint(model("resnet8-cifar")), fingerprint(model("resnet8-cifar")));
  EXPECT_EQ(fingerprint(model("resnet8-cifar")), fingerprint(model("resnet8-cifar", 10, 0.1)))
      << "label smoothing is an option of the training";
  EXPECT_EQ(fingerprint(model("resnet8-cifar")).size(), 64u);
}

TEST(Fingerprint, TellsEveryChangedLayerApart) {
  std::set<std::string> seen;
  const auto is_new = [&](const Graph& graph) { return seen.insert(fingerprint(graph)).second; };
  EXPECT_TRUE(is_new(model("resnet8-cifar")));
  EXPECT_TRUE(is_new(model("resnet8-cifar", 11)));
  EXPECT_TRUE(is_new(model("resnet18-cifar")));
  EXPECT_TRUE(is_new(model("resnet18")));
  const Graph plain = model("resnet8-cifar");
  for (std::size_t i = 0; i < plain.nodes.size(); ++i) {
    Graph changed = plain;
    auto& op = changed.nodes[i].op;
    if (auto* conv = std::get_if<Conv2d>(&op))
      conv->padding.height += 1;
    else if (auto* norm = std::get_if<BatchNorm>(&op))
      norm->epsilon *= 2;
    else if (std::holds_alternative<Relu>(op))
      op = Gelu{};
    else
      continue;
    EXPECT_TRUE(is_new(changed)) << plain.nodes[i].name;
  }
  Graph renamed = plain;
  renamed.parameters.front().name += "2";
  EXPECT_TRUE(is_new(renamed)) << "checkpoints know parameters by name";
}

/// Layers that keep [10,4,5], with attributes that are not the usual ones.
constexpr const char* kSampleNorms = R"(
[[layer]]
op = "layer_norm"
name = "ln"
epsilon = 1e-6
[[layer]]
op = "dense"
name = "each"
features = 10
flatten = false
[[layer]]
op = "group_norm"
name = "gn"
groups = 5
epsilon = 0.001
[[layer]]
op = "scale"
name = "ls"
initial = 1e-6
dimensions = 1
weight = "gamma"
)";

/// Tokens of 10 channels and the first one of them.
constexpr const char* kOfTokens = R"(
[[layer]]
op = "position"
name = "place"
weight = "tokens.pos_embedding"
[[layer]]
op = "class_token"
name = "tokens.class"
weight = "tokens.class_token"
[[layer]]
op = "concat"
name = "qkv"
inputs = ["tokens.class", "tokens.class", "tokens.class"]
[[layer]]
op = "attention"
heads = 5
[[layer]]
op = "first_place"
)";

/// A model with every kind of layer, each with attributes that are not the usual ones where it has some.
std::string every_kind() {
  std::string text = R"(
[[layer]]
op = "conv2d"
name = "a \"quoted\\ name.0"
channels = 8
kernel = 3
stride = 2
padding = 1
groups = 3
bias = true
weight_rate = 0
[[layer]]
op = "conv2d"
name = "c"
channels = 8
[[layer]]
op = "batch_norm"
name = "n"
epsilon = 1e-7
momentum = 1
)";
  text.replace(text.find("channels = 8"), 12, "channels = 9");
  for (const char* op : {"relu", "relu6", "gelu", "silu", "sigmoid", "tanh", "hard_sigmoid", "hard_swish"})
    text += std::string("[[layer]]\nop = \"") + op + "\"\n";
  return text + R"(
[[layer]]
op = "max_pool"
name = "m"
kernel = 3
stride = 1
padding = 1
[[layer]]
op = "average_pool"
name = "v"
kernel = 3
stride = 1
padding = 1
[[layer]]
op = "add"
name = "sum"
inputs = ["v", "n"]
[[layer]]
op = "concat"
name = "all"
inputs = ["sum", "m", "n"]
[[layer]]
op = "channel_shuffle"
groups = 3
[[layer]]
op = "slice"
name = "some"
begin = 5
channels = 10
[[layer]]
op = "pad"
top = 1
right = 2
back = 1
[[layer]]
op = "adaptive_average_pool"
size = [4, 5]
[[layer]]
op = "average_pool"
kernel = [2, 3]
ceil = true
count_padding = false
[[layer]]
op = "conv2d"
name = "uneven"
channels = 10
kernel = [1, 2]
padding = [0, 2]
dilation = [1, 2]
)" + kSampleNorms +
         R"(
[[layer]]
op = "stochastic_depth"
probability = 1e-9
[[layer]]
op = "global_average_pool"
name = "pooled"
[[layer]]
op = "mul"
inputs = ["some", "pooled"]
[[layer]]
op = "dropout"
probability = 0.25
)" + std::string(kOfTokens) +
         R"([[layer]]
op = "dense"
name = "fc"
features = "classes"
bias = false
)";
}

TEST(Layout, ATextGivesItsGraphAgain) {
  std::vector<Graph> graphs{parse_model(every_kind(), "all", {3, 16, 12}, 7, 0.1)};
  for (const auto& name : model_names()) graphs.push_back(make_model(name, {3, 64, 64}, 11, 0));
  std::set<std::string_view> kinds;
  for (const Graph& graph : graphs) {
    const auto text = canonical_text(graph);
    const Graph read = graph_from_text(text, graph.name, "here");
    EXPECT_EQ(canonical_text(read), text);
    EXPECT_EQ(read.name, graph.name);
    ASSERT_EQ(read.parameters.size(), graph.parameters.size());
    for (std::size_t i = 0; i < graph.parameters.size(); ++i) {
      EXPECT_EQ(read.parameters[i].name, graph.parameters[i].name);
      EXPECT_EQ(read.parameters[i].shape, graph.parameters[i].shape);
    }
    for (const Node& node : graph.nodes) kinds.insert(rule_of(node.op).kind);
  }
  for (const Attributes& op : all_ops())
    EXPECT_TRUE(kinds.contains(rule_of(op).kind)) << rule_of(op).kind << " is in no model above";
}

TEST(Layout, AGraphIsMadeForOtherImages) {
  const Graph graph = make_model("mobilenet_v2", {3, 64, 64}, 7, 0.1);
  const Graph larger = for_input(graph, {3, 96, 80}).value();
  EXPECT_EQ(canonical_text(larger), canonical_text(make_model("mobilenet_v2", {3, 96, 80}, 7, 0.1)));
  EXPECT_EQ(larger.name, "mobilenet_v2");
  EXPECT_EQ(std::get<SoftmaxCrossEntropy>(larger.nodes.back().op).label_smoothing, 0.1);
  EXPECT_FALSE(for_input(make_model("mnist-cnn", {1, 28, 28}, 10, 0), {1, 32, 32}).has_value())
      << "its dense layer has a weight for each pixel";
}

TEST(Layout, RefusesTextsThatAreNoGraph) {
  const auto text = canonical_text(make_model("mnist-cnn", {1, 28, 28}, 10, 0));
  std::vector<std::string> broken{
      "", "\n\n\n", "x", text.substr(0, text.size() / 2), text + text, text.substr(text.find('\n') + 1)};
  for (std::size_t at = 0; at < text.size(); at += 7) {
    broken.push_back(text);
    broken.back()[at] = text[at] == '9' ? '8' : '9';
  }
  for (const auto& lines : broken) {
    try {
      // A digit of a name may be another one, and the graph is one all the same: then its text is that one.
      EXPECT_EQ(canonical_text(graph_from_text(lines, "m", "t/a.safetensors")), lines);
    } catch (const base::Error& error) {
      EXPECT_EQ(error.kind(), base::ErrorKind::data);
      EXPECT_THAT(error.what(), StartsWith("t/a.safetensors: its graph cannot be read: "));
    }
  }
}

}  // namespace
}  // namespace paceline::graph
