#include "train/checkpoint/disk_space.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/builder.h"

namespace paceline::train {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;

graph::Graph dense(int inputs, int classes) {
  graph::Builder model("dense");
  model.loss(model.dense(model.input({inputs, 1, 1}), "dense", {.features = classes}), 0);
  return model.finish();
}

TEST(DiskSpace, ACheckpointHoldsWeightsStateAndSlowWeights) {
  const auto graph = dense(16, 16);  // 16 x 16 weights and 16 of bias, both whole lines
  const std::int64_t weights = 4 * (16 * 16 + 16);
  EXPECT_EQ(checkpoint_bytes(graph, {}, false), weights);
  EXPECT_EQ(checkpoint_bytes(graph, {.momentum = 0.9}, false), 2 * weights);
  EXPECT_EQ(checkpoint_bytes(graph, {.kind = engine::UpdateKind::adam}, true), 4 * weights);
}

TEST(DiskSpace, IsOfTheNearestDirectoryThatIsThere) {
  const fs::path out = fs::path(testing::TempDir()) / "not" / "there" / "yet";
  const auto room = static_cast<std::int64_t>(fs::space(testing::TempDir()).available);
  EXPECT_FALSE(lack_of_space(out, 1, 3));
  const auto lack = lack_of_space(out, room, 3);
  ASSERT_TRUE(lack);
  EXPECT_THAT(*lack, HasSubstr("MB are free, but 3 checkpoints of "));
  EXPECT_THAT(*lack, HasSubstr("make room, or the next ones will not be kept"));
  EXPECT_FALSE(lack_of_space(out, room / 8, 2));
}

}  // namespace
}  // namespace paceline::train
