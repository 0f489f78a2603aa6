#include <gtest/gtest.h>

#include <set>
#include <vector>

#include "graph/layout.h"
#include "graph/zoo.h"

namespace paceline::graph {
namespace {

TEST(Layout, CoversEveryParameterOnceWithoutOverlap) {
  for (const std::string& name : model_names()) {
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

}  // namespace
}  // namespace paceline::graph
