// fp16 on a device: the loss scale judges the gradients, leaves out updates, and changes.

#include "engine/loss_scale.h"

#include <gtest/gtest.h>

#include "engine/cuda/compare.h"

namespace paceline::engine::cuda {
namespace {

CompileOptions in_f16() { return {.batch = 4, .precision = Precision::f16, .rule = {.momentum = 0.9}}; }

void set(Engine& engine, const LossScale& scale) {
  engine.fetch();
  engine.set_loss_scale(scale);
  engine.weights_changed();
}

void train_once(Engine& engine, int step, bool is_queued = false) {
  const auto options = in_f16();
  const toy::Samples samples(engine.graph(), 10 * step, options.batch);
  const auto input = samples.step(1.0 / options.batch, static_cast<std::uint64_t>(step));
  if (is_queued) {
    auto& queue = *engine.step_queue();
    queue.forward(input, {}, {.rule = options.rule, .lr = 0.01, .number = step + 1});
    engine.backward({});
    queue.update();
    (void)queue.collect();
  } else {
    (void)engine.forward(input);
    engine.backward({});
    engine.update(options.rule, 0.01, step + 1);
  }
  engine.fetch();
}

struct TrainedArrays {
  std::vector<float> weights, state;
  bool operator==(const TrainedArrays&) const = default;
};
TrainedArrays trained_arrays(Engine& engine) {
  return {toy::copy(engine.weights()), toy::copy(engine.optimizer_state(0))};
}

// At 2^40 the first gradient does not fit; from 16 on these models' gradients do.
TEST(LossScale, LeavesOutAnUpdateThatOverflows) {
  const auto graph = toy::every_op();
  for (const Device& device : devices())
    for (const bool is_queued : {false, true}) {
      SCOPED_TRACE(device.name + (is_queued ? ", queued" : ""));
      const auto engine = compile_on(device, graph, in_f16());
      toy::initialise(*engine, 3);
      set(*engine, {.scale = 0x1p40f, .clean = 7});
      const auto before = trained_arrays(*engine);
      train_once(*engine, 0, is_queued);
      EXPECT_EQ(trained_arrays(*engine), before);
      EXPECT_EQ(engine->loss_scale(), (LossScale{.scale = 0x1p39f, .clean = 0, .left_out = 1}));
      set(*engine, {.scale = 16, .clean = 0, .left_out = 1});
      train_once(*engine, 1, is_queued);
      EXPECT_NE(trained_arrays(*engine), before);
      EXPECT_EQ(engine->loss_scale(), (LossScale{.scale = 16, .clean = 1, .left_out = 1}));
    }
}

TEST(LossScale, DoublesAfterUpdatesWithoutOverflow) {
  const auto engine = compile_on_host(toy::every_op(), in_f16());
  toy::initialise(*engine, 3);
  set(*engine, {.scale = 4, .clean = kCleanUpdates - 2});
  train_once(*engine, 0);
  EXPECT_EQ(engine->loss_scale(), (LossScale{.scale = 4, .clean = kCleanUpdates - 1}));
  train_once(*engine, 1);
  EXPECT_EQ(engine->loss_scale(), (LossScale{.scale = 8, .clean = 0}));
}

// A power of two scales without rounding, as long as nothing is so small that fp16 has fewer digits for it.
TEST(LossScale, ChangesNoGradientThatFits) {
  const auto graph = sandwich(8, 4, [](graph::Builder& model, int src) { return model.relu(src); });
  const auto gradients_at = [&](float scale) {
    const auto engine = compile_on_host(graph, in_f16());
    toy::initialise(*engine, 3);
    set(*engine, {.scale = scale});
    train_once(*engine, 0);
    return toy::copy(engine->gradients());
  };
  EXPECT_EQ(gradients_at(0x1p12f), gradients_at(0x1p14f));
}

TEST(LossScale, IsOfFp16OnDevicesAlone) {
  const auto graph = toy::every_op();
  auto options = in_f16();
  EXPECT_EQ(compile_on_host(graph, options)->loss_scale(), LossScale{});
  options.training = false;
  EXPECT_EQ(compile_on_host(graph, options)->loss_scale(), std::nullopt);
  options = in_f16();
  options.precision = Precision::bf16;
  EXPECT_EQ(compile_on_host(graph, options)->loss_scale(), std::nullopt);
}

}  // namespace
}  // namespace paceline::engine::cuda
