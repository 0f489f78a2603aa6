#pragma once

/// What the tests of the CUDA engine share: the devices that it is tested on, and the comparison with the
/// reference engine (double).

#include <algorithm>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "engine/cuda/engine.h"
#include "engine/cuda/ordered_runtime.h"
#include "engine/cuda/runtime/devices.h"
#include "engine/cuda/storage.h"
#include "engine/cuda/test_gpu.h"
#include "engine/reference/double_engine.h"
#include "engine/reference/toy.h"
#include "engine/tolerance.h"
#include "graph/rates.h"
#include "graph/zoo.h"

namespace paceline::engine::cuda {

inline constexpr Precision kPrecisions[] = {Precision::f32, Precision::bf16, Precision::f16};

/// A device, or the processor in its place.
struct Device {
  std::string name;
  std::function<std::unique_ptr<Runtime>()> make;
  std::vector<Precision> precisions;  ///< that it computes in
};

/// The host runtime always, the first GPU where there is one, which is said; where one is required its
/// absence is a failure of the test that asks first.
inline const std::vector<Device>& devices() {
  static const std::vector<Device> all = [] {
    const std::vector<Precision> all_three(std::begin(kPrecisions), std::end(kPrecisions));
    std::vector<Device> devices = {
        {"host runtime", [] { return std::make_unique<HostRuntime>(); }, all_three}};
    try {
      const auto gpu = open_device_runtime(0);
      print_device(*gpu);
      devices.push_back({"GPU 0", [] { return open_device_runtime(0); },
                         has_bf16_units(gpu->facts().compute_capability)
                             ? all_three
                             : std::vector{Precision::f32, Precision::f16}});
    } catch (const base::Error&) {  // no GPU here: doctor says why
      if (gpu_is_required()) throw;
    }
    return devices;
  }();
  return all;
}

inline std::unique_ptr<Engine> compile_on(const Device& device, const graph::Graph& graph,
                                          const CompileOptions& options) {
  return compile(graph, options, device.make(), {.name = "cuda", .poison = true});
}
/// On the host runtime, in a given order of streams.
inline std::unique_ptr<Engine> compile_on_host(const graph::Graph& graph, const CompileOptions& options,
                                               const HostRuntimeOptions& order = {}) {
  return compile(graph, options, std::make_unique<OrderedRuntime>(order), {.name = "cuda", .poison = true});
}

/// What the reference engine finds in two training steps and an evaluation of a short batch.
struct Expected {
  std::vector<LossSums> losses;  ///< of each step, then of the evaluation
  std::vector<std::vector<float>> gradients;
  std::vector<float> weights;
};

/// Gradients of frozen parameters, which nobody reads, are those of the scaled loss.
inline void unscale_frozen(const Engine& engine, std::vector<float>& gradients) {
  const auto scale = engine.loss_scale();
  if (!scale) return;
  for (const graph::Slot& slot : engine.layout().slots) {
    const auto& parameter = engine.graph().parameters[static_cast<std::size_t>(slot.parameter)];
    if (!graph::is_trainable(parameter.role) || !parameter.is_frozen()) continue;
    for (std::int64_t i = slot.offset; i < slot.offset + slot.elements; ++i)
      gradients[static_cast<std::size_t>(i)] /= scale->scale;
  }
}

/// The steps themselves, on any engine.
inline Expected run_steps(Engine& engine, const CompileOptions& options) {
  toy::initialise(engine, 3);
  Expected found;
  for (int step = 0; step < 2; ++step) {
    const toy::Samples samples(engine.graph(), 100 * step, options.batch, options.has_two_labels);
    found.losses.push_back(
        engine.forward(samples.step(1.0 / options.batch, static_cast<std::uint64_t>(step), 100 * step)));
    engine.backward([](std::int64_t) {});
    found.gradients.push_back(toy::copy(engine.gradients()));
    unscale_frozen(engine, found.gradients.back());
    engine.update(options.rule, 0.01, step + 1);
  }
  const int count = (options.batch + 1) / 2;
  const toy::Samples samples(engine.graph(), 5000, count);
  found.losses.push_back(engine.evaluate(samples.images, samples.labels, count));
  engine.fetch();
  found.weights = toy::copy(engine.weights());
  return found;
}

inline Expected expected_of(const graph::Graph& graph, const CompileOptions& options) {
  return run_steps(*reference::compile_double(graph, options), options);
}

inline void expect_near(const Engine& engine, const Expected& got, const Expected& want, Tolerance allowed) {
  for (std::size_t i = 0; i < want.losses.size(); ++i) {
    const LossSums &g = got.losses[i], &w = want.losses[i];
    EXPECT_EQ(g.samples, w.samples);
    const auto samples = static_cast<double>(w.samples);
    EXPECT_NEAR(g.loss / samples, w.loss / samples,
                allowed.relative * std::abs(w.loss / samples) + allowed.absolute)
        << (i < 2 ? "step " + std::to_string(i) : "evaluation");
  }
  for (std::size_t step = 0; step < want.gradients.size(); ++step)
    expect_near_by_parameter(engine, got.gradients[step], want.gradients[step], allowed,
                             "step " + std::to_string(step) + ", gradient");
  expect_near_by_parameter(engine, got.weights, want.weights, allowed, "weight");
}

/// run_steps() on each device in the given precisions. `length`: as tolerance() takes it. In bf16 and fp16
/// values and their gradients are rounded once an op, sums within ops are float: the same model of errors,
/// with another epsilon.
inline void expect_like_reference(const graph::Graph& graph, const CompileOptions& options, double length,
                                  const std::vector<Precision>& precisions = {Precision::f32, Precision::bf16,
                                                                              Precision::f16}) {
  const Expected want = expected_of(graph, options);
  for (const Device& device : devices())
    for (const Precision precision : precisions) {
      if (std::ranges::find(device.precisions, precision) == device.precisions.end()) continue;
      SCOPED_TRACE(device.name + ", " + name_of(precision));
      CompileOptions own = options;
      own.precision = precision;
      const auto engine = compile_on(device, graph, own);
      expect_near(*engine, run_steps(*engine, own), want, tolerance(precision, length));
    }
}

/// input [image_channels, size, size] -> 1x1 convolution, whose weight gradient shows the op's d_src -> `op`
/// -> dense layer, whose weights make the gradient different at every position -> loss.
inline graph::Graph sandwich(int channels, int size, const std::function<int(graph::OpBuilder&, int)>& op,
                             int image_channels = 3) {
  graph::OpBuilder model("sandwich");
  int value = model.conv2d(model.input({image_channels, size, size}), "before",
                           {.channels = channels, .kernel = 1, .bias = true});
  value = op(model, value);
  value = model.dense(value, "after", {.features = 5});
  model.loss(value, 0.1);
  return model.finish();
}

}  // namespace paceline::engine::cuda
