// The update as the engine runs it: it packs what convolutions read in the same pass.

#include "engine/cuda/optimizer.h"

#include <gtest/gtest.h>

#include "engine/cuda/compare.h"
#include "engine/update_rule.h"

namespace paceline::engine::cuda {
namespace {

/// Losses of six steps and an evaluation, then the weights. `packs_apart`: weights are packed by a pass of
/// their own after each update, as after every change from outside.
std::vector<float> six_steps(Engine& engine, const CompileOptions& options, double lr, bool packs_apart) {
  toy::initialise(engine, 5);
  std::vector<float> trace;
  for (int step = 0; step < 6; ++step) {
    const toy::Samples samples(engine.graph(), 50 * step, options.batch);
    trace.push_back(static_cast<float>(
        engine.forward(samples.step(1.0 / options.batch, static_cast<std::uint64_t>(step))).loss));
    engine.backward({});
    engine.update(options.rule, lr, step + 1);
    if (!packs_apart) continue;
    engine.fetch();
    engine.weights_changed();
  }
  const toy::Samples samples(engine.graph(), 7000, options.batch);
  trace.push_back(static_cast<float>(engine.evaluate(samples.images, samples.labels, options.batch).loss));
  engine.fetch();
  const auto weights = toy::copy(engine.weights());
  trace.insert(trace.end(), weights.begin(), weights.end());
  return trace;
}

TEST(CudaOptimizer, UpdatesAndPacksInOnePassWithTheBitsOfTwo) {
  const auto graph = toy::every_op();
  for (const Device& device : devices())
    for (const Precision precision : device.precisions)
      for (const UpdateRuleRow& row : update_rules())
        for (const int shard : {0, 2}) {
          SCOPED_TRACE(device.name + ", " + name_of(precision) + ", " + std::string(row.name) + ", shard " +
                       std::to_string(shard));
          CompileOptions options{
              .batch = 4, .precision = precision, .rule = row.usual, .shard = shard, .seed = 3};
          if (shard > 0) options.batch_norm = BatchNormMode::synchronised;
          const auto run = [&](bool packs_apart) {
            return six_steps(*compile_on(device, graph, options), options, 0.05 * row.usual_lr, packs_apart);
          };
          EXPECT_EQ(run(false), run(true));
        }
}

// A dense layer on more pixels than a block of the update holds.
TEST(CudaOptimizer, PacksALayerThatDoesNotFitItsTilesAfterTheUpdate) {
  graph::Builder model("wide");
  const int input = model.input({2, 50, 50});
  model.loss(model.dense(model.relu(model.conv2d(input, "conv", {.channels = 3, .padding = 1})), "fc",
                         {.features = 4}),
             0);
  const auto graph = model.finish();
  const CompileOptions options{.batch = 2, .rule = {.momentum = 0.9}};
  const auto run = [&](bool packs_apart) {
    return six_steps(*compile_on_host(graph, options), options, 0.01, packs_apart);
  };
  EXPECT_EQ(run(false), run(true));
}

}  // namespace
}  // namespace paceline::engine::cuda
