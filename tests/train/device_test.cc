#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <mutex>
#include <utility>

#include "engine/cuda/engine.h"
#include "engine/cuda/observed_runtime.h"
#include "fixture.h"
#include "forwarding_engine.h"

namespace paceline::train {
namespace {

using testing::AnyOf;
using testing::Contains;
using testing::HasSubstr;

/// Trainings on an engine whose arrays are not the host's: the CUDA engine on the processor.
class Device : public TrainingTest {
 protected:
  [[nodiscard]] Options on_device(const std::string& out = "") const {
    Options options = small(out);
    options.device = "cuda-on-host";
    return options;
  }
};

TEST_F(Device, ComputesWhatTheProcessorDoes) {
  const auto there = train(on_device("there"));
  Options options = small("here");
  const auto here = train(options);
  ASSERT_EQ(there.steps.size(), here.steps.size());
  for (std::size_t i = 0; i < here.steps.size(); ++i)
    EXPECT_NEAR(there.steps[i].loss, here.steps[i].loss, 1e-4) << "step " << i;
  EXPECT_NEAR(there.epochs.back().test_loss.value(), here.epochs.back().test_loss.value(), 1e-3);
}

TEST_F(Device, ItsRecordNamesDeviceAndRuntime) {
  Options options = on_device("o");
  options.workers = 2;
  const auto record = train(options);
  EXPECT_EQ(record.status, "complete");
  EXPECT_EQ(record.device, "cuda-on-host");
  EXPECT_EQ(record.device_name, "processor (no GPU)");
  EXPECT_THAT(record.environment.libraries, Contains(HasSubstr("CUDA engine on the processor")));
  EXPECT_FALSE(record.memory.device.has_value()) << "its memory is the host's";
  EXPECT_EQ(record.memory.plan_lines.count("gradients on the host"), 1u);
  EXPECT_THAT(record.communication.algorithm, HasSubstr("by way of the host"));
  EXPECT_THAT(record.notes, Contains(HasSubstr("the device computes asynchronously")));
  const auto kept = measure::read_record(options.out / "record.json");
  EXPECT_EQ(kept.device_name, record.device_name);
}

TEST_F(Device, WithShardsGivesTheSameBitsForAnyNumberOfWorkers) {
  for (const auto batch_norm : {engine::BatchNormMode::local, engine::BatchNormMode::synchronised}) {
    Options options = on_device();
    options.shard = 4;
    options.batch_norm = batch_norm;
    const std::string name = batch_norm == engine::BatchNormMode::local ? "local" : "sync";
    const std::string one = checkpoint_of(options, name);
    for (const int workers : {2, 4}) {
      options.workers = workers;
      EXPECT_EQ(checkpoint_of(options, fmt::format("{}-{}", name, workers)), one) << workers << " workers";
    }
  }
}

TEST_F(Device, TwiceGivesTheSameBitsInBothPrecisions) {
  for (const char* precision : {"fp32", "bf16"}) {
    Options options = on_device();
    options.precision = precision;
    options.workers = 2;
    const std::string out = precision;
    EXPECT_EQ(checkpoint_of(options, out + "a"), checkpoint_of(options, out + "b"));
  }
}

TEST_F(Device, StoppedAndResumedGivesTheBitsOfTheUninterruptedRun) {
  Options options = on_device();
  options.workers = 2;
  options.lookahead = {.steps = 3, .keep = 0.7, .power = 1};  // reads and writes the weights in between
  const std::string whole = checkpoint_of(options, "whole");
  options.out = directory_ / "parts";
  std::stop_source stop;
  Progress progress;
  progress.step = [&](std::int64_t step, std::int64_t, double, double) {
    if (step == 4) stop.request_stop();
  };
  EXPECT_EQ(train(options, stop.get_token(), progress).status, "interrupted");
  options.resume = options.out;
  EXPECT_EQ(checkpoint_of(options, "parts"), whole);
}

/// What the devices of a run did.
struct DeviceWork {
  int captures = 0, allocations = 0, launches = 0, replays = 0;
};
DeviceWork work_of(const engine::cuda::ObservedRuntime& runtime) {
  return {.captures = runtime.captures(),
          .allocations = runtime.allocations(),
          .launches = runtime.launches(),
          .replays = runtime.replays()};
}

/// What they did after the warm-ups of their engines.
struct AfterWarmUps {
  std::mutex mutex;
  int engines = 0, warm = 0;
  DeviceWork work;
};

class CountedEngine final : public ForwardingEngine {
 public:
  CountedEngine(std::unique_ptr<engine::Engine> engine, const engine::cuda::ObservedRuntime& runtime,
                AfterWarmUps& all)
      : ForwardingEngine(std::move(engine)), runtime_(runtime), all_(all) {
    const std::lock_guard lock(all_.mutex);
    ++all_.engines;
  }
  ~CountedEngine() override {
    const DeviceWork now = work_of(runtime_);
    const std::lock_guard lock(all_.mutex);
    all_.work.captures += now.captures - then_.captures;
    all_.work.allocations += now.allocations - then_.allocations;
    all_.work.launches += now.launches - then_.launches;
    all_.work.replays += now.replays - then_.replays;
  }
  void warm_up(const engine::WarmUp& coming) override {
    ForwardingEngine::warm_up(coming);
    then_ = work_of(runtime_);
    const std::lock_guard lock(all_.mutex);
    ++all_.warm;
  }

 private:
  const engine::cuda::ObservedRuntime& runtime_;
  AfterWarmUps& all_;
  DeviceWork then_;
};

TEST_F(Device, PreparesNothingInAMeasuredWindow) {
  struct Case {
    const char* command;
    int window_steps, warmup_steps;  ///< 0: whole epochs with evaluations
  };
  for (const auto& [command, window_steps, warmup_steps] :
       {Case{"train", 0, 0}, Case{"sweep and scale", 6, 2}, Case{"study --quick", 5, 1}})
    for (const int workers : {1, 2}) {
      SCOPED_TRACE(fmt::format("{}, {} workers", command, workers));
      Options options = on_device();
      options.workers = workers;
      options.window_steps = window_steps;
      options.warmup_steps = warmup_steps;
      if (window_steps > 0) options.steps = 0;
      AfterWarmUps found;
      auto backend = backend_of("cuda-on-host");
      backend.made_up->on_compile = [&](const graph::Graph& graph, const engine::CompileOptions& how) {
        auto runtime = std::make_unique<engine::cuda::ObservedRuntime>();
        const auto& observed = *runtime;
        return std::make_unique<CountedEngine>(
            engine::cuda::compile(graph, how, std::move(runtime), {.name = "cuda-on-host"}), observed, found);
      };
      Progress progress;
      progress.step = [&](std::int64_t, std::int64_t, double, double) { EXPECT_EQ(found.warm, workers); };
      EXPECT_EQ(run(options, backend, {}, progress).status, "complete");
      EXPECT_EQ(found.engines, workers);
      EXPECT_EQ(found.warm, workers);
      EXPECT_EQ(found.work.captures, 0);
      EXPECT_EQ(found.work.allocations, 0);
      EXPECT_GE(found.work.replays, 3 * 5 * workers) << "sections of steps";
      if (window_steps > 0 && workers == 1) {
        EXPECT_EQ(found.work.launches, 0) << "all of a step is in sections: the device has the images";
      }
    }
}

TEST_F(Device, MeasuresBucketsBySize) {
  Options options = on_device();
  options.workers = 2;
  options.bucket_auto = true;
  options.steps = 0;
  options.warmup_steps = 1;
  options.window_steps = 3;
  const auto record = train(options);
  EXPECT_EQ(record.status, "complete");
  EXPECT_TRUE(record.communication.memory_ceiling_gb_per_s.has_value());
  EXPECT_THAT(record.notes, Contains(HasSubstr("--bucket auto")));
}

}  // namespace
}  // namespace paceline::train
