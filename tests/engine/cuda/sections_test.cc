// Captured sections of the step: recorded once, replayed with other inputs, learning rates and step numbers.

#include "engine/cuda/sections.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <limits>

#include "engine/cuda/compare.h"
#include "engine/cuda/observed_runtime.h"

namespace paceline::engine::cuda {
namespace {

using Steps = WarmUp::Steps;

constexpr int kReplaySteps = 20, kReplayBatch = 4;

/// Every number that a step has of its own changes.
double replay_rate(int step) { return 0.002 * (1 + step % 5); }
double replay_scale(int step) { return (1 + step % 3) / (2.0 * kReplayBatch); }

struct Trace {
  std::vector<double> losses;
  std::vector<float> weights;
  std::vector<std::int64_t> ready;  ///< what the last backward pass told
};

/// Twenty steps, an evaluation among them. The backward pass is cut at two ends, elsewhere from step 12 on,
/// each time followed by a warm-up unless `is_warmed` is false.
Trace run_twenty(Engine& engine, const CompileOptions& options, bool is_warmed = true) {
  toy::initialise(engine, 3);
  const std::int64_t all = engine.layout().elements;
  const auto cut_at = [&](const std::vector<std::int64_t>& ends) {
    engine.cut_backward(ends);
    if (is_warmed) engine.warm_up({.steps = Steps::waited, .views = 1});
  };
  cut_at({all / 2, all});
  Trace trace;
  for (int step = 0; step < kReplaySteps; ++step) {
    if (step == 12) cut_at({all / 4, 3 * all / 4, all});
    const toy::Samples samples(engine.graph(), 100 * step, kReplayBatch);
    const LossSums sums = engine.forward(
        samples.step(replay_scale(step), static_cast<std::uint64_t>(7 + 3 * step), 1000 - 10 * step));
    trace.losses.push_back(sums.loss / static_cast<double>(sums.samples));
    trace.ready.clear();
    engine.backward([&](std::int64_t ready) { trace.ready.push_back(ready); });
    UpdateRule rule = options.rule;
    rule.weight_decay = 1e-4 * step;
    engine.update(rule, replay_rate(step), step + 1);
    for (const int count : {3, kReplayBatch})
      if (step == 7) trace.losses.push_back(engine.evaluate(samples.images, samples.labels, count).loss);
  }
  engine.fetch();
  trace.weights = toy::copy(engine.weights());
  return trace;
}

CompileOptions options_for(UpdateKind kind, Precision precision = Precision::f32) {
  return {.batch = kReplayBatch, .precision = precision, .rule = {.kind = kind, .momentum = 0.9}, .seed = 3};
}

/// With the runtime that the engine owns.
struct OnHost {
  OnHost(const graph::Graph& graph, CompileOptions options, bool captures,
         const HostRuntimeOptions& order = {}) {
    auto owned = std::make_unique<ObservedRuntime>(order);
    runtime = owned.get();
    options.captures = captures;
    engine = compile(graph, options, std::move(owned), {.name = "cuda", .poison = true});
  }
  ObservedRuntime* runtime = nullptr;
  std::unique_ptr<Engine> engine;
};

void expect_same(const Trace& got, const Trace& want) {
  EXPECT_EQ(got.losses, want.losses);
  EXPECT_EQ(got.weights, want.weights);
  EXPECT_EQ(got.ready, want.ready);
}

std::vector<KernelChoice> rows_of_step(const Engine& engine) {
  std::vector<KernelChoice> rows = engine.kernels();
  std::erase_if(rows, [](const KernelChoice& row) { return row.op != "step"; });
  return rows;
}

TEST(CudaSections, GiveTheReferencesTwentyLosses) {
  const auto graph = toy::every_op();
  for (const UpdateKind kind : {UpdateKind::sgd, UpdateKind::adam}) {
    const auto options = options_for(kind);
    const Trace want = run_twenty(*reference::compile_double(graph, options), options);
    for (const Device& device : devices()) {
      // Adam divides a gradient by the root of its square: of a gradient near 0 the rounding alone decides
      // the sign of the update. On an H200 the evaluation was 1.9e-4 off with it.
      if (kind == UpdateKind::adam && device.name != "host runtime") continue;
      SCOPED_TRACE(device.name);
      const Trace got = run_twenty(*compile_on(device, graph, options), options);
      ASSERT_EQ(got.losses.size(), want.losses.size());
      for (std::size_t i = 0; i < want.losses.size(); ++i)
        EXPECT_NEAR(got.losses[i], want.losses[i], 1e-4 * std::abs(want.losses[i])) << "loss " << i;
    }
  }
}

TEST(CudaSections, HaveTheBitsOfStepsThatAreNotCaptured) {
  const auto graph = toy::every_op();
  for (const Device& device : devices())
    for (const Precision precision : device.precisions)
      for (const UpdateKind kind : {UpdateKind::sgd, UpdateKind::adam, UpdateKind::lars}) {
        SCOPED_TRACE(device.name + ", " + name_of(precision));
        auto options = options_for(kind, precision);
        const auto on = [&](bool captures) {
          options.captures = captures;
          return run_twenty(*compile(graph, options, device.make(), {.name = "cuda", .poison = true}),
                            options);
        };
        expect_same(on(true), on(false));
      }
}

TEST(CudaSections, HaveTheSameBitsInEveryOrderOfStreams) {
  const auto graph = toy::every_op();
  const auto options = options_for(UpdateKind::adamw);
  const Trace want = run_twenty(*OnHost(graph, options, false).engine, options);
  std::vector<HostRuntimeOptions> orders = {{.order = StreamOrder::first_first},
                                            {.order = StreamOrder::last_first}};
  for (std::uint64_t seed = 0; seed < 8; ++seed)
    orders.push_back({.order = StreamOrder::random, .seed = seed});
  for (const HostRuntimeOptions& order : orders)
    expect_same(run_twenty(*OnHost(graph, options, true, order).engine, options), want);
}

TEST(CudaSections, AWarmUpChangesNoBit) {
  const auto graph = toy::every_op();
  for (const Precision precision : kPrecisions)
    for (const UpdateKind kind : {UpdateKind::sgd, UpdateKind::adam, UpdateKind::lars}) {
      const auto options = options_for(kind, precision);
      const Trace want = run_twenty(*OnHost(graph, options, true).engine, options, false);
      expect_same(run_twenty(*OnHost(graph, options, true).engine, options), want);
      expect_same(run_twenty(*OnHost(graph, options, false).engine, options), want);
    }
}

/// Twenty steps of a queue, two passes each, results two steps late. The loss of step 15 is not finite.
Trace run_queued(Engine& engine, const CompileOptions& options) {
  toy::initialise(engine, 3);
  const std::int64_t all = engine.layout().elements;
  engine.cut_backward(std::vector{all / 2, all});
  engine.warm_up({.steps = Steps::queued});
  StepQueue& queue = *engine.step_queue();
  Trace trace;
  const auto collect = [&] {
    const QueuedStep step = queue.collect();
    trace.losses.push_back(step.local.loss);
    trace.losses.push_back(step.is_left_out ? 1 : 0);
    for (const float vote : step.votes) trace.losses.push_back(static_cast<double>(vote));
  };
  for (int step = 0; step < kReplaySteps; ++step) {
    if (step > queue.lag()) collect();
    for (int pass = 0; pass < 2; ++pass) {
      toy::Samples samples(engine.graph(), 100 * step + 10 * pass, kReplayBatch);
      if (step == 15) samples.images[3] = std::numeric_limits<float>::infinity();
      queue.forward(
          samples.step(replay_scale(step), static_cast<std::uint64_t>(7 + 3 * step), 1000 - 10 * step),
          {.stop = step == 9, .enough = step % 2 == 1},
          {.rule = options.rule, .lr = replay_rate(step), .number = step + 1});
      engine.backward([&](std::int64_t ready) { trace.ready.push_back(ready); });
    }
    queue.update();
  }
  for (int left = 0; left <= queue.lag(); ++left) collect();
  engine.fetch();
  trace.weights = toy::copy(engine.weights());
  return trace;
}

TEST(CudaSections, HaveTheBitsOfQueuedStepsThatAreNotCaptured) {
  const auto graph = toy::every_op();
  const auto options = options_for(UpdateKind::adamw);
  const Trace want = run_queued(*OnHost(graph, options, false).engine, options);
  ASSERT_EQ(want.losses.size(), 10u * kReplaySteps);
  EXPECT_EQ(want.losses[10 * 14 + 1], 0);
  EXPECT_EQ(want.losses[10 * 15 + 1], 1);
  for (const float weight : want.weights) ASSERT_TRUE(std::isfinite(weight));
  std::vector<HostRuntimeOptions> orders = {{.order = StreamOrder::last_first}};
  for (std::uint64_t seed = 0; seed < 6; ++seed)
    orders.push_back({.order = StreamOrder::random, .seed = seed});
  for (const HostRuntimeOptions& order : orders) {
    OnHost on(graph, options, true, order);
    const Trace got = run_queued(*on.engine, options);
    EXPECT_EQ(got.losses.size(), want.losses.size());
    // NaN, too, is the same.
    EXPECT_EQ(std::memcmp(got.losses.data(), want.losses.data(), want.losses.size() * sizeof(double)), 0);
    EXPECT_EQ(got.weights, want.weights);
    EXPECT_EQ(got.ready, want.ready);
    EXPECT_GT(on.runtime->replays(), kReplaySteps);
  }
}

TEST(CudaSections, ShowTheImagesThatEachStepNames) {
  const auto graph = toy::every_op();
  auto options = options_for(UpdateKind::sgd);
  options.stored_images = 9;
  const auto run = [&](bool captures) {
    OnHost on(graph, options, captures);
    toy::initialise(*on.engine, 3);
    on.engine->warm_up({.steps = Steps::waited});  // nothing is stored yet
    const auto sample = static_cast<std::size_t>(graph.input_shape().elements());
    std::vector<std::uint8_t> images(9 * sample);
    for (std::size_t i = 0; i < images.size(); ++i) images[i] = static_cast<std::uint8_t>(i * i / 7);
    std::vector<float> values(256 * 3);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 256) / 128 - 1;
    on.engine->store_images(0, images);
    on.engine->set_byte_values(values);
    Trace trace;
    for (int step = 0; step < kReplaySteps; ++step) {
      std::vector<std::int32_t> labels;
      std::vector<base::SampleDraw> draws;
      for (int n = 0; n < kReplayBatch; ++n) {
        labels.push_back((step + n) % 4);
        draws.push_back({.index = (step + 2 * n) % 9,
                         .shift_y = step % 3 - 1,
                         .shift_x = n % 3 - 1,
                         .is_mirrored = static_cast<std::int16_t>((step + n) % 2)});
      }
      trace.losses.push_back(
          on.engine->forward({.images = {}, .labels = labels, .gradient_scale = 0.25, .draws = draws}).loss);
      on.engine->backward({});
      on.engine->update(options.rule, replay_rate(step), step + 1);
    }
    on.engine->fetch();
    trace.weights = toy::copy(on.engine->weights());
    EXPECT_EQ(on.runtime->replays() > 0, captures);
    return trace;
  };
  expect_same(run(true), run(false));
}

TEST(CudaSections, AreCapturedByWarmUpsThenReplayed) {
  const auto graph = toy::every_op(0);
  const auto options = options_for(UpdateKind::sgd);
  for (const bool is_queued : {false, true}) {
    OnHost on(graph, options, true);
    const std::int64_t all = on.engine->layout().elements;
    on.engine->cut_backward(std::vector{all / 2, all});
    toy::initialise(*on.engine, 3);
    EXPECT_EQ(on.runtime->captures(), 0);
    on.engine->warm_up({.steps = is_queued ? Steps::queued : Steps::waited, .views = 1});
    // Forward, two parts of backward, update, evaluation.
    const int captures = on.runtime->captures(), allocations = on.runtime->allocations(),
              launches = on.runtime->launches();
    EXPECT_EQ(captures, 5);
    const toy::Samples samples(graph, 0, kReplayBatch);
    int replays = on.runtime->replays();
    for (int step = 1; step <= 5; ++step) {
      StepQueue& queue = *on.engine->step_queue();
      is_queued ? queue.forward(samples.step(0.25), {}, {.rule = options.rule, .lr = 0.1, .number = step})
                : static_cast<void>(on.engine->forward(samples.step(0.25)));
      int parts = 0;
      on.engine->backward([&](std::int64_t) { ++parts; });
      EXPECT_EQ(parts, 2);
      is_queued ? queue.update() : on.engine->update(options.rule, 0.1, step);
      if (is_queued) static_cast<void>(queue.collect());
      std::vector<double> logits(static_cast<std::size_t>(kReplayBatch * graph.classes()));
      static_cast<void>(on.engine->evaluate(samples.images, samples.labels, kReplayBatch, 1, logits));
      EXPECT_EQ(on.runtime->replays(), replays += 5) << "step " << step;
    }
    EXPECT_EQ(on.runtime->captures(), captures);
    EXPECT_EQ(on.runtime->allocations(), allocations);
    EXPECT_EQ(on.runtime->launches(), launches + 5 * 2) << "the input of each pass";
    ASSERT_EQ(rows_of_step(*on.engine).size(), 1u);
    EXPECT_EQ(rows_of_step(*on.engine)[0].implementation, "captured sections");
  }
}

TEST(CudaSections, WithoutAWarmUpAreLaunched) {
  const auto options = options_for(UpdateKind::sgd);
  OnHost on(toy::every_op(), options, true);
  static_cast<void>(run_twenty(*on.engine, options, false));
  EXPECT_EQ(on.runtime->captures(), 0);
}

TEST(CudaSections, ADeviceThatCannotCaptureRunsLaunchByLaunchAndSaysWhy) {
  const auto graph = toy::every_op();
  const auto options = options_for(UpdateKind::sgd);
  OnHost on(graph, options, true);
  on.runtime->refuse_captures("cudnnBackendExecute of conv1 cannot be captured");
  expect_same(run_twenty(*on.engine, options), run_twenty(*OnHost(graph, options, false).engine, options));
  ASSERT_EQ(rows_of_step(*on.engine).size(), 1u);
  EXPECT_EQ(rows_of_step(*on.engine)[0].implementation, "launch by launch");
  EXPECT_EQ(rows_of_step(*on.engine)[0].reason, "cudnnBackendExecute of conv1 cannot be captured");
}

TEST(CudaSections, OnlyWhatCannotBeCapturedRunsLaunchByLaunch) {
  ObservedRuntime runtime;
  const Stream stream = runtime.make_stream();
  std::byte* memory = runtime.allocate(4);
  Sections sections(runtime, stream, true, "");
  for (int step = 0; step < 5; ++step) {
    sections.capture_new(step == 1);
    for (const SectionPart part : {SectionPart::forward, SectionPart::backward, SectionPart::update}) {
      runtime.refuse_captures(part == SectionPart::backward ? "an engine of cuDNN's allocates" : "");
      sections.run({.part = part}, "part", [&] { runtime.fill_bytes(stream, memory, 0, 4); });
    }
  }
  EXPECT_EQ(runtime.captures(), 2);
  EXPECT_EQ(runtime.replays(), 8);
  EXPECT_EQ(sections.describe().implementation, "captured sections but for backward");
  EXPECT_EQ(sections.describe().reason, "an engine of cuDNN's allocates");
}

TEST(CudaSections, StatisticsThatTheHostSumsKeepAStepFromBeingCaptured) {
  auto options = options_for(UpdateKind::sgd);
  options.batch_norm = BatchNormMode::synchronised;
  options.shard = 2;
  options.reduce_statistics = [](std::span<double>) {};
  OnHost on(toy::every_op(), options, true);
  static_cast<void>(run_twenty(*on.engine, options));
  EXPECT_EQ(on.runtime->captures(), 1) << "the evaluation alone";
  ASSERT_EQ(rows_of_step(*on.engine).size(), 1u);
  EXPECT_EQ(rows_of_step(*on.engine)[0].implementation, "launch by launch");
  EXPECT_EQ(rows_of_step(*on.engine)[0].reason, "bn1 sums its statistics on the host");
}

/// Evaluations between training steps: full and short batches, one and two forms a sample.
std::vector<double> evaluations(Engine& engine, const CompileOptions& options) {
  toy::initialise(engine, 3);
  for (const int views : {1, 2})
    engine.warm_up({.steps = options.training ? Steps::waited : Steps::none, .views = views});
  std::vector<double> trace;
  for (int round = 0; round < 6; ++round) {
    if (options.training) {
      const toy::Samples samples(engine.graph(), 100 * round, options.batch);
      static_cast<void>(engine.forward(samples.step(0.2, static_cast<std::uint64_t>(round))));
      engine.backward({});
      engine.update(options.rule, replay_rate(round), round + 1);
    }
    for (const auto& [count, views] : {std::pair{5, 1}, std::pair{5, 1}, std::pair{2, 2}, std::pair{3, 1}}) {
      const toy::Samples samples(engine.graph(), 1000 + 10 * round + count, options.batch);
      std::vector<double> logits(static_cast<std::size_t>(count * engine.graph().classes()));
      const LossSums sums = engine.evaluate(samples.images, samples.labels, count, views, logits);
      trace.push_back(sums.loss);
      trace.push_back(static_cast<double>(sums.correct));
      trace.insert(trace.end(), logits.begin(), logits.end());
    }
  }
  return trace;
}

TEST(CudaSections, GiveEvaluationsTheBitsOfThoseThatAreNotCaptured) {
  const auto graph = toy::every_op();
  for (const Precision precision : kPrecisions)
    for (const bool training : {true, false}) {
      SCOPED_TRACE(std::string(name_of(precision)) + (training ? ", between steps" : ", alone"));
      CompileOptions options = options_for(UpdateKind::sgd, precision);
      options.batch = 5;
      options.training = training;
      const std::vector<double> want = evaluations(*OnHost(graph, options, false).engine, options);
      std::vector<HostRuntimeOptions> orders = {{}, {.order = StreamOrder::last_first}};
      for (std::uint64_t seed = 0; seed < 4; ++seed)
        orders.push_back({.order = StreamOrder::random, .seed = seed});
      for (const HostRuntimeOptions& order : orders) {
        OnHost on(graph, options, true, order);
        EXPECT_EQ(evaluations(*on.engine, options), want);
        EXPECT_GT(on.runtime->replays(), 6);
      }
    }
}

// A short batch has another number of samples, which kernels hold.
TEST(CudaSections, OfEvaluationsAreThoseOfFullBatches) {
  CompileOptions options = options_for(UpdateKind::sgd);
  options.training = false;
  OnHost on(toy::every_op(0), options, true);
  toy::initialise(*on.engine, 3);
  on.engine->warm_up({.views = 1});
  EXPECT_EQ(on.runtime->captures(), 1);
  const toy::Samples samples(on.engine->graph(), 0, kReplayBatch);
  const int replays = on.runtime->replays();
  for (int batch = 1; batch <= 4; ++batch) {
    static_cast<void>(on.engine->evaluate(samples.images, samples.labels, kReplayBatch));
    EXPECT_EQ(on.runtime->replays(), replays + batch);
  }
  for (int batch = 0; batch < 4; ++batch)
    static_cast<void>(on.engine->evaluate(samples.images, samples.labels, kReplayBatch - 1));
  EXPECT_EQ(on.runtime->replays(), replays + 4);
}

TEST(CudaSections, CutTheBackwardPassWhereGradientsUpToAnEndAreFinal) {
  ObservedRuntime runtime;
  const auto graph = toy::every_op();
  const Program program(graph, options_for(UpdateKind::sgd), runtime);
  const auto& slots = program.layout().slots;
  const std::int64_t all = program.layout().elements;
  const int ops = static_cast<int>(program.ops().size());
  // Everything in one section, though the last op has no parameters.
  for (const std::vector<std::int64_t>& ends : {std::vector{all}, std::vector{all / 3, 2 * all / 3, all}}) {
    const auto sections = cut_backward_pass(program, ends);
    ASSERT_LE(sections.size(), ends.size());
    ASSERT_GE(sections.size(), std::min(ends.size(), std::size_t{2}));
    EXPECT_EQ(sections.front().first_op, ops - 1);
    EXPECT_EQ(sections.back().last_op, 0);
    std::int64_t before = 0;
    for (std::size_t i = 0; i < sections.size(); ++i) {
      if (i > 0) {
        EXPECT_EQ(sections[i].first_op, sections[i - 1].last_op - 1);
      }
      EXPECT_TRUE(std::ranges::any_of(
          ends, [&](std::int64_t end) { return before < end && end <= sections[i].ready; }))
          << "nobody asked for a cut between " << before << " and " << sections[i].ready;
      before = sections[i].ready;
    }
    EXPECT_EQ(before, all);
  }
  // Without ends, as often as there is something new.
  EXPECT_GT(cut_backward_pass(program, {}).size(), slots.size() / 3);
}

}  // namespace
}  // namespace paceline::engine::cuda
