// Ops on tokens: shapes, parameters as PyTorch has them, cost, refusals.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "graph/initialise.h"
#include "graph/layout.h"
#include "graph/op_builder.h"
#include "graph/ops.h"
#include "graph/plan.h"
#include "graph/zoo.h"

namespace paceline::graph {
namespace {

using Builder = OpBuilder;

using testing::HasSubstr;

/// Patches as tokens, a class token, their positions, attention of two heads, the class token's logits.
Graph small_vit() {
  Builder model("small-vit");
  int value = model.conv2d(model.input({3, 8, 12}), "patches", {.channels = 6, .kernel = 4, .stride = 4});
  value = model.class_token(value, "token", {.weight = "class_token"});
  value = model.position(value, "place", {.weight = "encoder.pos_embedding"});
  value = model.conv2d(value, "qkv", {.channels = 18, .kernel = 1, .bias = true});
  value = model.attention(value, 2);
  model.loss(model.dense(model.first_place(value), "head", {.features = 5}), 0);
  return model.finish();
}

TEST(TokenOps, HaveTheShapesOfPyTorch) {
  const Graph graph = small_vit();
  const auto shape = [&](std::size_t node) { return graph.nodes[node].shape; };
  EXPECT_EQ(shape(1), (Shape{6, 2, 3}));
  EXPECT_EQ(shape(2), (Shape{6, 7, 1})) << "a place for each patch, and the class token's";
  EXPECT_EQ(shape(3), shape(2));
  EXPECT_EQ(shape(5), (Shape{6, 7, 1})) << "a third of its input's channels";
  EXPECT_EQ(shape(6), (Shape{6, 1, 1}));
  const auto& parameters = graph.parameters;
  EXPECT_EQ(parameters[1].name, "class_token");
  EXPECT_EQ(parameters[1].shape, (std::vector<std::int64_t>{1, 1, 6}));
  EXPECT_EQ(parameters[2].name, "encoder.pos_embedding");
  EXPECT_EQ(parameters[2].shape, (std::vector<std::int64_t>{1, 7, 6}));
}

// q k^T and the probabilities times v: 2 T T C; backward the probabilities again, and two for each of these.
TEST(TokenOps, CountBothProductsOfAttention) {
  const Graph graph = small_vit();
  const std::int64_t attention = 2 * 7 * 7 * 6, patches = 6 * 6 * 48, qkv = 7 * 18 * 6, head = 5 * 6;
  EXPECT_EQ(multiply_adds(graph, 5), attention);
  EXPECT_EQ(forward_flops(graph), 2 * (patches + qkv + attention + head));
  EXPECT_EQ(training_flops(graph),
            2 * (2 * patches + 3 * (qkv + head) + attention * 7 / 2));  // the image needs no gradient
}

TEST(TokenOps, BeginAsThoseOfTorchvision) {
  Builder model("wide");
  int value = model.class_token(model.input({64, 8, 8}), "token");
  value = model.position(value, "place");
  model.loss(model.dense(model.first_place(value), "head", {.features = 2}), 0);
  const Graph graph = model.finish();
  const Layout layout = flat_layout(graph);
  std::vector<float> weights(static_cast<std::size_t>(layout.elements), -7);
  initialise(graph, layout, 1, weights);
  const auto squares = [&](int node) {
    const Slot& slot = *slot_of(graph, layout, node, 0);
    double sum = 0;
    for (std::int64_t i = slot.offset; i < slot.offset + slot.elements; ++i)
      sum += weights[static_cast<std::size_t>(i)] * weights[static_cast<std::size_t>(i)];
    return sum / static_cast<double>(slot.elements);
  };
  EXPECT_EQ(squares(1), 0) << "the class token";
  EXPECT_NEAR(squares(2), 0.02 * 0.02, 0.02 * 0.02 * 5 * std::sqrt(2.0 / (65 * 64))) << "4,160 draws";
}

TEST(TokenOps, RefuseWhatCannotBe) {
  const auto refusal = [](Shape input, int heads) {
    Builder model("test");
    try {
      model.attention(model.input(input), heads, "a");
    } catch (const base::Error& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refusal({12, 5, 1}, 2), "");
  EXPECT_THAT(refusal({10, 5, 1}, 2), HasSubstr("attention 'a': its input must be q, k and v, three times"));
  EXPECT_THAT(refusal({10, 5, 1}, 2), HasSubstr("but is [10,5,1]"));
  EXPECT_THAT(refusal({12, 5, 1}, 3), HasSubstr("heads must divide the 4 channels of its output, but is 3"));
  EXPECT_THAT(refusal({12, 5, 1}, 0), HasSubstr("but is 0"));
}

}  // namespace
}  // namespace paceline::graph
