// Which samples share statistics: local, ghost, synchronised; and what becomes of the running values.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <thread>
#include <vector>

#include "engine/reference/double_engine.h"
#include "engine/reference/toy.h"

namespace paceline::engine::reference {
namespace {

/// Dropout is on: its masks must be those of the joint batch too.
graph::Graph normed() { return toy::every_op(0.3, 0.1); }

TEST(BatchNorm, SynchronisedOverTwoWorkersEqualsOneOnTheJointBatch) {
  const graph::Graph graph = normed();
  const auto joint = compile_double(graph, {.batch = 6, .seed = 4});
  toy::initialise(*joint, 2);
  const LossSums sums = joint->forward(toy::Samples(graph, 0, 6).step(1.0 / 6, 1, 30));
  joint->backward({});

  toy::Reducer reducer(2);
  std::vector<std::unique_ptr<Engine>> engines;
  for (int rank = 0; rank < 2; ++rank) {
    engines.push_back(compile_double(
        graph,
        {.batch = 3,
         .batch_norm = BatchNormMode::synchronised,
         .seed = 4,
         .reduce_statistics = [&reducer, rank](std::span<double> values) { reducer.sum(rank, values); },
         .world_size = 2}));
    toy::initialise(*engines.back(), 2);
  }
  std::vector<LossSums> parts(2);
  {
    std::vector<std::jthread> workers;
    for (int rank = 0; rank < 2; ++rank)
      workers.emplace_back([&, rank] {
        parts[static_cast<std::size_t>(rank)] = engines[static_cast<std::size_t>(rank)]->forward(
            toy::Samples(graph, rank * 3, 3).step(1.0 / 6, 1, 30 + rank * 3));
        engines[static_cast<std::size_t>(rank)]->backward({});
      });
  }
  parts[0] += parts[1];
  EXPECT_NEAR(parts[0].loss, sums.loss, 0x1p-22);  // a sample's rounding may fall on the other side
  EXPECT_EQ(parts[0].correct, sums.correct);
  for (std::size_t i = 0; i < joint->gradients().host().size();
       ++i)  // the slots of running statistics among them
    EXPECT_NEAR(engines[0]->gradients().host()[i] + engines[1]->gradients().host()[i],
                joint->gradients().host()[i], 1e-6)
        << i;
}

TEST(BatchNorm, LocalOverTwoWorkersDiffersFromTheJointBatch) {
  // The control of the test above: it must be able to fail.
  const graph::Graph graph = normed();
  const auto joint = compile_double(graph, {.batch = 6, .seed = 4}),
             half = compile_double(graph, {.batch = 3, .seed = 4});
  toy::initialise(*joint, 2);
  toy::initialise(*half, 2);
  joint->forward(toy::Samples(graph, 0, 6).step(1.0 / 6));
  joint->backward({});
  std::vector<float> sum(joint->gradients().host().size());
  for (int rank = 0; rank < 2; ++rank) {
    half->forward(toy::Samples(graph, rank * 3, 3).step(1.0 / 6, 0, rank * 3));
    half->backward({});
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += half->gradients().host()[i];
  }
  double difference = 0;
  for (std::size_t i = 0; i < sum.size(); ++i)
    difference = std::max(difference, std::abs(static_cast<double>(sum[i]) - joint->gradients().host()[i]));
  EXPECT_GT(difference, 1e-3);
}

TEST(BatchNorm, GhostGroupsEqualSeparateLocalBatches) {
  const graph::Graph graph = normed();
  const auto ghost =
      compile_double(graph, {.batch = 6, .batch_norm = BatchNormMode::ghost, .ghost_size = 2, .seed = 4});
  const auto local = compile_double(graph, {.batch = 2, .seed = 4});
  toy::initialise(*ghost, 2);
  toy::initialise(*local, 2);
  const LossSums sums = ghost->forward(toy::Samples(graph, 0, 6).step(1.0 / 6));
  ghost->backward({});
  LossSums parts;
  std::vector<double> gradients(ghost->gradients().host().size());
  for (int group = 0; group < 3; ++group) {
    parts += local->forward(toy::Samples(graph, group * 2, 2).step(1.0 / 6, 0, group * 2));
    local->backward({});
    for (std::size_t i = 0; i < gradients.size(); ++i) gradients[i] += local->gradients().host()[i];
  }
  EXPECT_EQ(sums.loss, parts.loss);
  for (std::size_t i = 0; i < gradients.size(); ++i)
    EXPECT_NEAR(ghost->gradients().host()[i], gradients[i], 1e-6) << i;
}

TEST(BatchNorm, RunningValuesFoldInTheUnbiasedVariance) {
  graph::Builder model("norm");
  const int norm = model.batch_norm(model.input({2, 1, 2}), "bn", {.momentum = 0.25});
  model.loss(model.dense(norm, "fc", {.features = 2}), 0);
  const graph::Graph graph = model.finish();
  const auto engine = compile(graph, {.batch = 2});
  toy::initialise(*engine, 1);
  // [N][H][W][C]: channel 0 has 1, 2, 3, 6 (mean 3, unbiased variance 14/3); channel 1 has 0, 0, 0, 4 (1 and
  // 4).
  const std::vector<float> images = {1, 0, 2, 0, 3, 0, 6, 4};
  const std::vector<std::int32_t> labels = {0, 1};
  engine->forward({.images = images, .labels = labels, .gradient_scale = 0.5});
  engine->backward({});
  engine->update({}, 0.0, 1);
  const auto value = [&](std::size_t parameter, std::size_t i) {
    const auto& slot =
        engine->layout().slots[static_cast<std::size_t>(engine->layout().slot_of_parameter[parameter])];
    return engine->weights()[static_cast<std::size_t>(slot.offset) + i];
  };
  ASSERT_EQ(graph.parameters[2].name, "bn.running_mean");
  EXPECT_FLOAT_EQ(value(2, 0), 0.25f * 3);
  EXPECT_FLOAT_EQ(value(2, 1), 0.25f * 1);
  EXPECT_FLOAT_EQ(value(3, 0), 0.75f + 0.25f * 14 / 3);
  EXPECT_FLOAT_EQ(value(3, 1), 0.75f + 0.25f * 4);
}

}  // namespace
}  // namespace paceline::engine::reference
