#include "graph/layout.h"

#include <gtest/gtest.h>

#include <vector>

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
}  // namespace paceline::graph
