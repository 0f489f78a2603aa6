#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/program.h"
#include "graph/zoo.h"

namespace paceline::engine {

static bool operator==(const Lifetime& a, const Lifetime& b) {
  return a.first == b.first && a.last == b.last;
}
static void PrintTo(const Lifetime& life, std::ostream* out) {
  *out << "[" << life.first << ", " << life.last << "]";
}

namespace {

using testing::ElementsAre;
using testing::IsEmpty;

/// Groups: 0 input, 1 conv1, 2 batch norm with ReLU, 3 conv2, 4 sum with 2, 5 pool, 6 fc, 7 loss. Backward:
/// 15 - i.
class LifetimesOfAResidual : public testing::Test {
 protected:
  LifetimesOfAResidual() {
    graph::Builder model("residual");
    conv1 = model.conv2d(model.input({3, 8, 8}), "conv1", {.channels = 8, .padding = 1});
    trunk = model.relu(model.batch_norm(conv1, "bn1"));
    conv2 = model.conv2d(trunk, "conv2", {.channels = 8, .padding = 1});
    sum = model.add(conv2, trunk);
    pooled = model.global_average_pool(sum);
    logits = model.dense(pooled, "fc", {.features = 4});
    loss = model.loss(logits, 0);
    graph = model.finish();
    groups = fuse(graph);
  }
  [[nodiscard]] Lifetimes of(bool training, LossKeeps keeps = LossKeeps::probabilities) const {
    return lifetimes(graph, groups, training, keeps);
  }
  static std::optional<Lifetime> value(const Lifetimes& lives, int node) {
    return lives.values[static_cast<std::size_t>(node)];
  }
  static const std::vector<int>& gradient(const Lifetimes& lives, int node) {
    return lives.gradient[static_cast<std::size_t>(node)];
  }

  int conv1 = 0, trunk = 0, conv2 = 0, sum = 0, pooled = 0, logits = 0, loss = 0;
  graph::Graph graph;
  std::vector<FusedGroup> groups;
};

TEST_F(LifetimesOfAResidual, KeepValuesUntilTheirLastReader) {
  const Lifetimes lives = of(true);
  ASSERT_EQ(groups.size(), 8u);
  EXPECT_EQ(value(lives, 0), (Lifetime{0, backward_at(1, 8)}));  // the weight gradient reads it
  EXPECT_EQ(value(lives, conv1), (Lifetime{1, 13}));             // batch norm normalises it again
  EXPECT_EQ(value(lives, trunk), (Lifetime{2, 12}));
  EXPECT_EQ(value(lives, conv2), (Lifetime{3, 4}));  // a sum reads nothing in its backward pass
  EXPECT_EQ(value(lives, sum), (Lifetime{4, 5}));
  EXPECT_EQ(value(lives, pooled), (Lifetime{5, 9}));
  EXPECT_EQ(value(lives, logits), (Lifetime{6, 7}));
  EXPECT_EQ(value(of(true, LossKeeps::logits), logits), (Lifetime{6, 8}));
  EXPECT_FALSE(value(lives, loss));
  EXPECT_EQ(lives.group_of[static_cast<std::size_t>(trunk)], 2);
  EXPECT_EQ(lives.group_of[static_cast<std::size_t>(trunk - 1)], -1);  // inside of a group
}

TEST_F(LifetimesOfAResidual, PassGradientsOnInPlace) {
  const Lifetimes lives = of(true);
  ASSERT_EQ(lives.terms.size(), 5u);
  // Of logits, of the pool, of the sum (then of the trunk, then of conv1, in place), of conv2, of the trunk.
  EXPECT_THAT(gradient(lives, logits), ElementsAre(0));
  EXPECT_THAT(gradient(lives, pooled), ElementsAre(1));
  EXPECT_THAT(gradient(lives, sum), ElementsAre(2));
  EXPECT_THAT(gradient(lives, conv2), ElementsAre(3));
  EXPECT_THAT(gradient(lives, trunk), ElementsAre(2, 4));
  EXPECT_THAT(gradient(lives, conv1), ElementsAre(2));
  EXPECT_THAT(gradient(lives, 0), IsEmpty());  // images
  EXPECT_EQ(lives.terms[0].life, (Lifetime{8, 9}));
  EXPECT_EQ(lives.terms[2].life, (Lifetime{10, 14}));
  EXPECT_EQ(lives.terms[3].life, (Lifetime{11, 12}));
  EXPECT_EQ(lives.terms[4].life, (Lifetime{12, 13}));
  EXPECT_THAT(lives.d_src[1], ElementsAre(-1));
  EXPECT_THAT(lives.d_src[4], ElementsAre(3, 2));
}

TEST_F(LifetimesOfAResidual, EndWithTheForwardPassWithoutTraining) {
  const Lifetimes lives = of(false);
  EXPECT_EQ(value(lives, conv1), (Lifetime{1, 2}));
  EXPECT_EQ(value(lives, trunk), (Lifetime{2, 4}));
  EXPECT_THAT(lives.terms, IsEmpty());
  EXPECT_THAT(lives.d_src[4], ElementsAre(-1, -1));
}

}  // namespace
}  // namespace paceline::engine
