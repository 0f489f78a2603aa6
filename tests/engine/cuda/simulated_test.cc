// The simulated clock, and what it says of the engine's steps: that the host keeps the device busy.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "engine/cuda/kernels/kernel.h"
#include "engine/cuda/kernels/table.h"
#include "engine/cuda/simulated_runtime.h"
#include "engine/cuda/simulated_step.h"
#include "graph/zoo.h"

namespace paceline::engine::cuda {
namespace {

using Wait = SimulatedStepOptions::Wait;
using testing::HasSubstr;

/// A kernel of so many seconds.
ArrayFill kernel_of(double seconds) {
  return {.dst = nullptr,
          .count = static_cast<std::int64_t>(seconds * simulated::kBytesPerSecond / 4),
          .value = 0};
}
constexpr double kMs = 1e-3;
constexpr double kExact = 1e-9;

TEST(SimulatedRuntime, TheHostGoesOnWhileTheDeviceComputes) {
  SimulatedRuntime runtime;
  const Stream stream = runtime.make_stream();
  for (int i = 0; i < 3; ++i) runtime.launch(stream, kernel_of(kMs));
  EXPECT_NEAR(runtime.now(), 3 * simulated::kLaunchSeconds, kExact);
  EXPECT_NEAR(runtime.end_of(Unit::compute), simulated::kLaunchSeconds + 3 * kMs, kExact);
  runtime.synchronize(stream);
  EXPECT_NEAR(runtime.now(), simulated::kLaunchSeconds + 3 * kMs + simulated::kWakeSeconds, kExact);
}

TEST(SimulatedRuntime, AShortKernelWaitsForTheHostAndLastsAsLongAsTheShortest) {
  SimulatedRuntime runtime;
  const Stream stream = runtime.make_stream();
  for (int i = 0; i < 5; ++i) runtime.launch(stream, kernel_of(0));
  EXPECT_NEAR(runtime.end_of(Unit::compute),
              5 * simulated::kLaunchSeconds + simulated::kShortestKernelSeconds, kExact);
  EXPECT_EQ(runtime.launches(), 5);
}

TEST(SimulatedRuntime, ACapturedSectionCostsOneLaunchAndRunsWithoutGaps) {
  SimulatedRuntime runtime;
  const Stream stream = runtime.make_stream();
  const CapturedSection section = runtime.capture(stream, [&] {
    for (int i = 0; i < 5; ++i) runtime.launch(stream, kernel_of(0));
  });
  EXPECT_EQ(runtime.now(), simulated::kCaptureSeconds);
  EXPECT_EQ(runtime.end_of(Unit::compute), 0) << "nothing runs";
  runtime.replay(stream, section);
  EXPECT_NEAR(runtime.end_of(Unit::compute) - simulated::kCaptureSeconds,
              simulated::kLaunchSeconds + 5 * simulated::kShortestKernelSeconds, kExact);
  EXPECT_EQ(runtime.launches(), 1);
  EXPECT_THROW(static_cast<void>(runtime.capture(stream, [&] { runtime.synchronize(stream); })), base::Error);
}

TEST(SimulatedRuntime, CopiesRunBesideKernelsUntilAnEventOrdersThem) {
  SimulatedRuntime runtime;
  const Stream compute = runtime.make_stream(), copies = runtime.make_stream();
  const Event copied = runtime.make_event();
  const auto bytes = static_cast<std::size_t>(kMs * simulated::kLinkBytesPerSecond);
  auto* pinned = runtime.allocate_pinned(bytes);
  auto* device = runtime.allocate(bytes);
  runtime.launch(compute, kernel_of(20 * kMs));
  runtime.copy_to_device(copies, device, pinned, bytes);
  const double filled = static_cast<double>(bytes) / simulated::kFillPinnedBytesPerSecond;
  const double arrived = filled + 2 * simulated::kLaunchSeconds + simulated::kCopyLatencySeconds + kMs;
  EXPECT_NEAR(runtime.end_of(Unit::link_in), arrived, kExact);
  EXPECT_LT(runtime.end_of(Unit::link_in), runtime.end_of(Unit::compute));
  // Another stream's kernel waits for the copy, and for the multiprocessors.
  const Stream other = runtime.make_stream();
  runtime.record(copied, copies);
  runtime.wait(other, copied);
  runtime.launch(other, kernel_of(kMs));
  EXPECT_NEAR(runtime.end_of(Unit::compute), simulated::kLaunchSeconds + 21 * kMs, kExact);
  runtime.synchronize(copied);
  EXPECT_LT(runtime.now(), 10 * kMs);
  runtime.synchronize_all();
  EXPECT_GT(runtime.now(), 21 * kMs);
}

TEST(SimulatedRuntime, OfTwoCopiesTheOneThatIsReadyGoesFirst) {
  SimulatedRuntime runtime;
  const Stream compute = runtime.make_stream(), copies = runtime.make_stream();
  auto* pinned = runtime.allocate_pinned(8);
  auto* device = runtime.allocate(8);
  runtime.launch(compute, kernel_of(20 * kMs));
  runtime.copy_to_device(compute, device, pinned, 8);  // behind the kernel
  runtime.copy_to_device(copies, device, pinned, 8);
  std::vector<double> begins;
  for (const SimulatedSpan& span : runtime.spans())
    if (span.unit == Unit::link_in) begins.push_back(span.begin_s);
  ASSERT_EQ(begins.size(), 2u);
  EXPECT_GT(begins[0], 20 * kMs);
  EXPECT_LT(begins[1], kMs);
}

TEST(SimulatedRuntime, AConvolutionTakesTheLargerOfItsFloors) {
  const auto seconds = [](int channels, Precision precision) {
    SimulatedRuntime runtime;
    const Stream stream = runtime.make_stream();
    const ConvProblem problem{.precision = precision,
                              .samples = 128,
                              .channels_in = channels,
                              .height_in = 32,
                              .width_in = 32,
                              .channels_out = channels,
                              .height_out = 32,
                              .width_out = 32,
                              .kernel_height = 3,
                              .kernel_width = 3,
                              .stride = 1,
                              .padding = 1};
    runtime.make_convolution(problem, {})->run(stream, {});
    return runtime.spans().back().seconds();
  };
  const double pixels = 128.0 * 32 * 32;
  // 512 channels: products; 16: bytes.
  EXPECT_NEAR(seconds(512, Precision::bf16), 2 * pixels * 512 * 512 * 9 / 798e12, kExact);
  EXPECT_NEAR(seconds(16, Precision::bf16), (2 * pixels * 16 + 16 * 16 * 9) * 2 / 3.0e12, kExact);
  EXPECT_NEAR(seconds(512, Precision::f32), 2 * pixels * 512 * 512 * 9 / 67e12, kExact);
}

// ---- steps of resnet18-cifar

SimulatedStep step_of(int batch, const SimulatedStepOptions& how = {}) {
  static const auto graph = graph::make_model("resnet18-cifar", {3, 32, 32}, 10, 0.1);
  return simulate_step(graph, {.batch = batch, .precision = Precision::bf16, .rule = {.momentum = 0.9}}, how);
}

TEST(SimulatedStep, TakesAsLongAsTheRooflineSays) {
  // Each kernel at the larger of its floors: 9.1 us an image, and 82 us for the update (the design's own
  // sum). The shortest kernels, and the image's padded channels, come on top.
  const SimulatedStep step = step_of(512);
  double computing = 0;
  for (const SimulatedSpan& span : step.spans)
    if (span.unit == Unit::compute) computing += span.seconds();
  const double roofline = 512 * 9.1e-6 + 82e-6;
  EXPECT_GT(computing, 0.95 * roofline);
  EXPECT_LT(computing, 1.15 * roofline);
}

TEST(SimulatedStep, KeepsTheDeviceBusy) {
  for (const int batch : {128, 512})
    for (const bool stores : {true, false}) {
      const SimulatedStep step = step_of(batch, {.stores_images = stores});
      EXPECT_GE(step.busy, 0.95) << "batch " << batch << ": " << figures_of(step, batch);
      EXPECT_LE(step.busy, 1 + kExact);
    }
}

TEST(SimulatedStep, ShowsWhatAWaitCostsWhereTheHostCopiesImages) {
  for (const int batch : {128, 512}) {
    const SimulatedStep good = step_of(batch, {.stores_images = false});
    const SimulatedStep waits = step_of(batch, {.stores_images = false, .wait = Wait::end});
    EXPECT_LT(waits.busy, 0.9) << "batch " << batch << ": " << figures_of(waits, batch);
    EXPECT_GT(waits.seconds, 1.1 * good.seconds);
  }
}

TEST(SimulatedStep, ShowsWhatAWaitCosts) {
  for (const int batch : {128, 512})
    for (const Wait wait : {Wait::loss, Wait::middle, Wait::end}) {
      const SimulatedStep good = step_of(batch), waits = step_of(batch, {.wait = wait});
      EXPECT_LT(waits.busy, good.busy - 0.002) << "batch " << batch << ": " << figures_of(waits, batch);
      EXPECT_GT(waits.seconds, good.seconds);
    }
}

TEST(SimulatedStep, ShowsLaunchesThatNothingHides) {
  const SimulatedStep good = step_of(128), launches = step_of(128, {.captures = false});
  EXPECT_LT(launches.busy, 0.85) << figures_of(launches, 128);
  EXPECT_GT(launches.launches, 10 * good.launches);
  // A step that is long enough hides them, until somebody waits.
  EXPECT_GT(step_of(512, {.captures = false}).busy, launches.busy);
}

TEST(SimulatedStep, OfAnEvaluationCostsTheHostFewerLaunches) {
  for (const int batch : {128, 512}) {
    const SimulatedStep good = step_of(batch, {.evaluates = true});
    const SimulatedStep launches = step_of(batch, {.captures = false, .evaluates = true});
    EXPECT_LT(good.launches, 10) << figures_of(good, batch);
    EXPECT_GT(launches.launches, 5 * good.launches);
    EXPECT_LT(good.seconds, launches.seconds);
  }
}

TEST(SimulatedStep, IsTheSameEachTime) {
  EXPECT_EQ(step_of(128).seconds, step_of(128).seconds);
  EXPECT_EQ(picture_of(step_of(128), "x", 128), picture_of(step_of(128), "x", 128));
}

TEST(SimulatedStep, IsDrawn) {
  const std::string picture = picture_of(step_of(128), "resnet18-cifar, batch 128", 128);
  EXPECT_THAT(picture, HasSubstr("resnet18-cifar, batch 128: step "));
  for (const char* part :
       {"host ", "compute ", "copies in ", "copies out ", "layer1\n", "layer4\n", "update\n"})
    EXPECT_THAT(picture, HasSubstr(part));
}

}  // namespace
}  // namespace paceline::engine::cuda
