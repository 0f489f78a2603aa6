// What makes two graphs the same model.

#include "graph/fingerprint.h"

#include <gtest/gtest.h>

#include <set>

#include "graph/zoo.h"

namespace paceline::graph {
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
      conv->padding += 1;
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
