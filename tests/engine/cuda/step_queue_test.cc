// Steps in a queue give the bits of steps that are waited for; the host waits for what is two steps old, and
// for nothing else.

#include <cmath>
#include <cstring>
#include <limits>
#include <optional>

#include "engine/cuda/compare.h"
#include "engine/cuda/observed_runtime.h"

namespace paceline::engine::cuda {
namespace {

constexpr int kQueuedSteps = 20;

CompileOptions small_batches(Precision precision = Precision::f32) {
  return {.batch = 4, .precision = precision, .rule = {.momentum = 0.9}, .seed = 3};
}

toy::Samples samples_of(const Engine& engine, int step, int pass = 0) {
  return toy::Samples(engine.graph(), 50 * step + 7 * pass, 4);
}

/// What a training leaves.
struct Left {
  std::vector<LossSums> losses;
  std::vector<float> weights, state;
  bool operator==(const Left& other) const {
    const auto same = [](const std::vector<float>& a, const std::vector<float>& b) {
      return a.size() == b.size() && std::memcmp(a.data(), b.data(), 4 * a.size()) == 0;
    };
    if (losses.size() != other.losses.size()) return false;
    for (std::size_t i = 0; i < losses.size(); ++i)
      if (losses[i].loss != other.losses[i].loss || losses[i].correct != other.losses[i].correct ||
          losses[i].samples != other.losses[i].samples)
        return false;
    return same(weights, other.weights) && same(state, other.state);
  }
};

void fetch(Engine& engine, Left& left) {
  engine.fetch();
  left.weights = toy::copy(engine.weights());
  left.state = toy::copy(engine.optimizer_state(0));
}

double rate_of_queued(int step) { return 0.1 / (1 + step); }

/// `passes` a step, as shards are.
Left waited(Engine& engine, int passes = 1) {
  toy::initialise(engine, 4);
  Left left;
  for (int step = 0; step < kQueuedSteps; ++step) {
    LossSums sums;
    for (int pass = 0; pass < passes; ++pass) {
      const auto samples = samples_of(engine, step, pass);
      sums += engine.forward(samples.step(0.25, static_cast<std::uint64_t>(step), 50 * step));
      engine.backward([](std::int64_t) {});
    }
    left.losses.push_back(sums);
    engine.update({.momentum = 0.9}, rate_of_queued(step), step + 1);
  }
  fetch(engine, left);
  return left;
}

void enqueue(Engine& engine, int step, int passes = 1, const UpdateRule& rule = {.momentum = 0.9}) {
  StepQueue& queue = *engine.step_queue();
  for (int pass = 0; pass < passes; ++pass) {
    const auto samples = samples_of(engine, step, pass);  // gone when this returns
    queue.forward(samples.step(0.25, static_cast<std::uint64_t>(step), 50 * step), {},
                  {.rule = rule, .lr = rate_of_queued(step), .number = step + 1});
    engine.backward([](std::int64_t) {});
  }
  queue.update();
}

Left queued(Engine& engine, int passes = 1, const std::function<void(int)>& before_step = {}) {
  toy::initialise(engine, 4);
  StepQueue& queue = *engine.step_queue();
  Left left;
  int posted = 0;
  while (static_cast<int>(left.losses.size()) < kQueuedSteps) {
    for (; posted < kQueuedSteps && posted - static_cast<int>(left.losses.size()) <= queue.lag(); ++posted) {
      if (before_step) before_step(posted);
      enqueue(engine, posted, passes);
    }
    left.losses.push_back(queue.collect().local);
  }
  fetch(engine, left);
  return left;
}

std::vector<HostRuntimeOptions> some_orders(int random) {
  std::vector<HostRuntimeOptions> all = {
      {}, {.order = StreamOrder::first_first}, {.order = StreamOrder::last_first}};
  for (int seed = 0; seed < random; ++seed)
    all.push_back({.order = StreamOrder::random, .seed = static_cast<std::uint64_t>(seed)});
  return all;
}

TEST(CudaStepQueue, GivesTheBitsOfStepsThatAreWaitedForInAnyOrderOfStreams) {
  const auto graph = toy::every_op();
  for (const Precision precision : kPrecisions) {
    const Left want = waited(*compile_on_host(graph, small_batches(precision)));
    ASSERT_TRUE(std::isfinite(want.losses.back().loss));
    for (const auto& order : some_orders(8))
      EXPECT_TRUE(queued(*compile_on_host(graph, small_batches(precision), order)) == want)
          << name_of(precision) << ", order " << static_cast<int>(order.order) << ", seed " << order.seed;
  }
}

// Second labels travel with the batch; the host's are gone when a step is computed. Warmed up, so that the
// captured steps read them too.
TEST(CudaStepQueue, TakesSecondLabelsOfEachStep) {
  const auto graph = toy::every_op();
  CompileOptions options = small_batches();
  options.has_two_labels = true;
  const auto input_of = [](const toy::Samples& samples, int step) {
    return samples.step(0.25, static_cast<std::uint64_t>(step), 50 * step);
  };
  const auto start = [&](WarmUp::Steps steps, const HostRuntimeOptions& order) {
    auto engine = compile_on_host(graph, options, order);
    engine->warm_up({.steps = steps, .views = 1});
    toy::initialise(*engine, 4);
    return engine;
  };
  Left want;
  const auto waiting = start(WarmUp::Steps::waited, {});
  for (int step = 0; step < 3; ++step) {
    const toy::Samples samples(graph, 50 * step, 4, true);
    want.losses.push_back(waiting->forward(input_of(samples, step)));
    waiting->backward([](std::int64_t) {});
    waiting->update(options.rule, rate_of_queued(step), step + 1);
  }
  fetch(*waiting, want);
  for (const auto& order : some_orders(4)) {
    const auto engine = start(WarmUp::Steps::queued, order);
    StepQueue& queue = *engine->step_queue();
    Left got;
    for (int step = 0; step < 3; ++step) {
      const toy::Samples samples(graph, 50 * step, 4, true);
      queue.forward(input_of(samples, step), {},
                    {.rule = options.rule, .lr = rate_of_queued(step), .number = step + 1});
      engine->backward([](std::int64_t) {});
      queue.update();
    }
    for (int step = 0; step < 3; ++step) got.losses.push_back(queue.collect().local);
    fetch(*engine, got);
    EXPECT_TRUE(got == want) << "order " << static_cast<int>(order.order) << ", seed " << order.seed;
  }
}

TEST(CudaStepQueue, OfSeveralPassesAStepAddsTheirLosses) {
  const auto graph = toy::every_op();
  const Left want = waited(*compile_on_host(graph, small_batches()), 3);
  EXPECT_EQ(want.losses.front().samples, 12);
  for (const auto& order : some_orders(4))
    EXPECT_TRUE(queued(*compile_on_host(graph, small_batches(), order), 3) == want);
}

TEST(CudaStepQueue, IsWaitedForOnceAStepTwoStepsLate) {
  auto runtime = std::make_unique<ObservedRuntime>();
  ObservedRuntime& host = *runtime;
  const auto engine = compile(toy::every_op(), small_batches(), std::move(runtime));
  toy::initialise(*engine, 4);
  StepQueue& queue = *engine->step_queue();
  enqueue(*engine, 0);
  const std::size_t of_the_first = host.queued();
  enqueue(*engine, 1);
  const std::size_t of_a_step = host.queued() - of_the_first;
  ASSERT_GT(of_a_step, 50U);
  enqueue(*engine, 2);
  EXPECT_EQ(host.queued(), of_the_first + 2 * of_a_step) << "nothing has run";
  for (int step = 3; step < kQueuedSteps; ++step) {
    const int streams = host.stream_synchronizations(), events = host.event_synchronizations();
    (void)queue.collect();
    EXPECT_EQ(host.event_synchronizations(), events + 1);
    EXPECT_EQ(host.queued(), 2 * of_a_step) << "two steps are still to be computed";
    enqueue(*engine, step);
    EXPECT_EQ(host.event_synchronizations(), events + 1) << "inside of step " << step;
    EXPECT_EQ(host.stream_synchronizations(), streams) << "inside of step " << step;
  }
  while (host.queued() > 0) (void)queue.collect();
}

/// A copy between host and device makes the compute stream wait for another engine of the device.
TEST(CudaStepQueue, CopiesOnTheStreamOfCopiesAlone) {
  for (const bool clips : {false, true}) {
    CompileOptions options = small_batches();
    if (clips) options.rule.clip_norm = 0.1;
    auto runtime = std::make_unique<ObservedRuntime>();
    ObservedRuntime& host = *runtime;
    const auto engine = compile(toy::every_op(), options, std::move(runtime));
    toy::initialise(*engine, 4);
    StepQueue& queue = *engine->step_queue();
    const int before = host.host_copies(0), with_batch = host.host_copies(1);
    for (int step = 0; step < 3; ++step) enqueue(*engine, step, 2, options.rule);
    const double first = queue.collect().gradient_norm, second = queue.collect().gradient_norm;
    EXPECT_EQ(first != second, clips) << "each step has a report of its own";
    (void)queue.collect();
    EXPECT_EQ(host.host_copies(0), before) << "the compute stream is made first";
    EXPECT_EQ(host.host_copies(1), with_batch + 2 * 3 * 2) << "images, and all the rest, of each pass";
  }
}

TEST(CudaStepQueue, NeedsEachOfItsWaits) {
  const auto graph = toy::every_op();
  const auto left = [&](const HostRuntimeOptions& order, std::optional<int> dropped,
                        int* waits = nullptr) -> std::optional<Left> {
    auto runtime = std::make_unique<ObservedRuntime>(order);
    ObservedRuntime& host = *runtime;
    const auto engine = compile(graph, small_batches(), std::move(runtime), {.name = "cuda"});
    int before = 0;
    const auto begin_at = [&](int step) {
      if (step != 4) return;  // the queue is full
      before = host.waits();
      if (dropped) host.drop_wait(before + *dropped);
    };
    try {
      const Left found = queued(*engine, 1, begin_at);
      if (waits != nullptr) *waits = host.waits() - before;
      return found;
    } catch (const base::Error&) {  // it shows
      return std::nullopt;
    }
  };
  const Left want = left({}, {}).value();
  for (int wait = 0; wait < 4; ++wait)  // two steps' worth: for the batch, and for the step that is collected
    EXPECT_TRUE(std::ranges::any_of(some_orders(20),
                                    [&](const HostRuntimeOptions& order) {
                                      const auto found = left(order, wait);
                                      return !found || !(*found == want);
                                    }))
        << "wait " << wait << " can be left out";
}

TEST(CudaStepQueue, LeavesOutAllUpdatesFromALossThatIsNotFiniteUntilWeightsAreWritten) {
  for (const UpdateKind kind : {UpdateKind::sgd, UpdateKind::adam, UpdateKind::lars}) {
    CompileOptions options = small_batches();
    options.rule = {.kind = kind, .momentum = 0.9};
    const auto engine = compile_on_host(toy::every_op(), options);
    toy::initialise(*engine, 4);
    StepQueue& queue = *engine->step_queue();
    std::vector<float> good;
    for (int step = 0; step < 6; ++step) {
      auto samples = samples_of(*engine, step);
      if (step == 3) {
        engine->fetch();
        good = toy::copy(engine->weights());
        samples.images.front() = std::numeric_limits<float>::quiet_NaN();
      }
      queue.forward(samples.step(0.25, static_cast<std::uint64_t>(step)), {},
                    {.rule = options.rule, .lr = 0.1, .number = step + 1});
      engine->backward([](std::int64_t) {});
      queue.update();
      if (step < 2) continue;
      const QueuedStep late = queue.collect();
      EXPECT_EQ(late.votes[1] > 0, step - 2 == 3) << step;
      EXPECT_EQ(late.is_left_out, step - 2 >= 3) << step;
    }
    EXPECT_TRUE(queue.collect().is_left_out);
    EXPECT_TRUE(queue.collect().is_left_out);
    engine->fetch();
    EXPECT_EQ(toy::copy(engine->weights()), good);
    engine->weights_changed();
    enqueue(*engine, 6, 1, options.rule);
    EXPECT_FALSE(queue.collect().is_left_out);
    engine->fetch();
    EXPECT_NE(toy::copy(engine->weights()), good);
  }
}

TEST(CudaStepQueue, MarksFollowEachOtherAndLieInThePast) {
  const auto engine = compile_on_host(toy::every_op(), small_batches());
  toy::initialise(*engine, 4);
  StepQueue& queue = *engine->step_queue();
  base::TimePoint last = base::Clock::now();
  for (int step = 0; step < 8; ++step) {
    if (step == 4) {  // the squares of sums are no part of their transfer
      const auto samples = samples_of(*engine, step);
      queue.forward(samples.step(0.25, 4), {}, {.rule = {.momentum = 0.9}, .lr = 0.1, .number = 5});
      engine->backward([](std::int64_t) {});
      queue.add_squares(SquaresOf::sums, 0, engine->layout().elements);
      queue.update();
    } else {
      enqueue(*engine, step);
    }
    if (step < 2) continue;
    const auto late = queue.collect();
    std::vector<Stage> stages;
    for (const Mark& mark : late.marks) {
      stages.push_back(mark.until);
      EXPECT_GE(mark.at, last - std::chrono::milliseconds(1));
      last = std::max(last, mark.at);
    }
    EXPECT_LE(last, base::Clock::now() + std::chrono::milliseconds(1));
    EXPECT_EQ(stages, (std::vector{Stage::gap, Stage::copy, Stage::forward, Stage::backward, Stage::transfer,
                                   Stage::update}));
  }
  (void)queue.collect();
  (void)queue.collect();
}

TEST(CudaStepQueue, IsOfTrainingEnginesOnDevices) {
  const auto graph = toy::every_op();
  CompileOptions options = small_batches();
  EXPECT_EQ(compile_on_host(graph, options)->step_queue()->lag(), 2);
  EXPECT_EQ(reference::compile(graph, options)->step_queue(), nullptr);
  options.training = false;
  EXPECT_EQ(compile_on_host(graph, options)->step_queue(), nullptr);
}

}  // namespace
}  // namespace paceline::engine::cuda
