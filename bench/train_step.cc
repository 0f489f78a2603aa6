// Times whole training steps of a model of the zoo on random images: forward, loss, backward, update, as
// torch_peer.py does. One JSON line goes out; steps_s has every sample. With --turns 1 it waits for a line of
// input, takes its steps, writes its line, and waits again: for step_turns.py, which holds two builds against
// each other. An engine that keeps images on its device has them there, and if it queues steps they are
// queued, as in a training: a step lasts from the end of the one before to its own on the device, and host_ms
// is what the host needs to put one there.

#include <fmt/core.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/rng.h"
#include "engine/make.h"
#include "graph/initialise.h"
#include "graph/zoo.h"

namespace {

using namespace paceline;

struct Options {
  std::string model = "resnet18-cifar";
  std::string device = "cpu";
  std::string precision = "fp32";
  int batch = 128, threads = 1, steps = 5, warmup = 2;
  int size = 0;           ///< height and width of the images; 0: the model's usual one
  bool by_op = false;     ///< also the processor time of each op, a step
  bool turns = false;     ///< as many times --steps as there are lines of input
  bool measured = false;  ///< kernels by measurement on this machine; false: as `train` takes them
  bool captured = true;   ///< a device's steps by captured sections; false: launch by launch
};

/// Processor time of all threads of this process: what a step costs where others share the cores.
double cpu_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--model")
      options.model = value;
    else if (name == "--device")
      options.device = value;
    else if (name == "--precision")
      options.precision = value;
    else if (name == "--batch")
      options.batch = std::stoi(value);
    else if (name == "--size")
      options.size = std::stoi(value);
    else if (name == "--threads")
      options.threads = std::stoi(value);
    else if (name == "--steps")
      options.steps = std::stoi(value);
    else if (name == "--warmup")
      options.warmup = std::stoi(value);
    else if (name == "--by-op")
      options.by_op = value == "1";
    else if (name == "--turns")
      options.turns = value == "1";
    else if (name == "--measured-kernels")
      options.measured = value == "1";
    else if (name == "--captured")
      options.captured = value == "1";
    else {
      fmt::print(
          stderr,
          "bench_train_step: unknown option {}; known are --model --size --device --precision fp32|bf16 "
          "--batch --threads --steps --warmup --by-op 0|1 --turns 0|1 --measured-kernels 0|1 --captured 0|1\n",
          name);
      std::exit(2);
    }
  }
  if (options.precision != "fp32" && options.precision != "bf16") {
    fmt::print(stderr, "bench_train_step: --precision must be fp32 or bf16, got '{}'\n", options.precision);
    std::exit(2);
  }
  return options;
}

/// Returns when a device has done all that it was given.
void wait_for(engine::Engine& engine) {
  float first = 0;
  const base::Array gradient = engine.gradients().subarray(0, 1);
  gradient.memory->read(gradient, std::span(&first, 1));
}

struct StepTimes {
  std::vector<double> seconds, forward_s, backward_s, update_s, cpu_s;
  std::vector<double> host_s;  ///< of a queue of steps: what the host needed for each
  double loss = 0;             ///< of the last step, a sample

  void take_step(engine::Engine& engine, const Options& options, const engine::UpdateRule& rule,
                 const engine::StepInput& input) {
    const double cpu_began = cpu_seconds();
    const auto t0 = base::Clock::now();
    loss = engine.forward(input).loss / options.batch;
    const auto t1 = base::Clock::now();
    engine.backward([](std::int64_t) {});
    const auto t2 = base::Clock::now();
    engine.update(rule, 0.1, static_cast<std::int64_t>(input.step) + 1);
    if (options.by_op) wait_for(engine);
    const auto t3 = base::Clock::now();
    seconds.push_back(base::seconds(t3 - t0));
    cpu_s.push_back(cpu_seconds() - cpu_began);
    forward_s.push_back(base::seconds(t1 - t0));
    backward_s.push_back(base::seconds(t2 - t1));
    update_s.push_back(base::seconds(t3 - t2));
  }

  /// Puts a step into the queue.
  void post_step(engine::Engine& engine, engine::StepQueue& queue, const engine::UpdateRule& rule,
                 const engine::StepInput& input) {
    const auto began = base::Clock::now();
    queue.forward(input, {}, {.rule = rule, .lr = 0.1, .number = static_cast<std::int64_t>(input.step) + 1});
    engine.backward([](std::int64_t) {});
    queue.update();
    host_s.push_back(base::seconds_since(began));
  }
  /// Takes the oldest step out of the queue. `last_end`: the end of the step before, if there is one.
  void collect_step(engine::StepQueue& queue, const Options& options,
                    std::optional<base::TimePoint>& last_end) {
    const engine::QueuedStep step = queue.collect();
    loss = step.local.loss / options.batch;
    base::TimePoint before{};
    for (const auto& [until, at] : step.marks) {
      if (until == engine::Stage::forward) forward_s.push_back(base::seconds(at - before));
      if (until == engine::Stage::backward) backward_s.push_back(base::seconds(at - before));
      if (until == engine::Stage::update) update_s.push_back(base::seconds(at - before));
      before = at;
    }
    if (last_end) seconds.push_back(base::seconds(before - *last_end));
    last_end = before;
  }
};

double median(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return (values[(values.size() - 1) / 2] + values[values.size() / 2]) / 2;
}

/// Gives an engine that keeps images random ones.
void store_images(engine::Engine& engine, std::size_t pixels, base::Rng& rng) {
  std::vector<float> values(256 * static_cast<std::size_t>(engine.graph().input_shape().channels));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = (static_cast<float>(i % 256) - 128) / 64;
  engine.set_byte_values(values);
  std::vector<std::uint8_t> bytes(pixels);
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(rng.below(256));
  engine.store_images(0, bytes);
}

/// How a device's steps are started: "captured sections", or "launch by launch" with the reason.
std::string way_of_steps(const engine::Engine& engine) {
  for (const auto& choice : engine.kernels())
    if (choice.op == "step")
      return choice.implementation + (choice.reason.empty() ? "" : ": " + choice.reason);
  return "calls of the host";
}

void print(const engine::Engine& engine, const Options& options, const StepTimes& times, double compile_s) {
  std::string samples;
  for (const double s : times.seconds) samples += fmt::format("{}{:.6f}", samples.empty() ? "" : ", ", s);
  const double step_s = median(times.seconds);
  fmt::print(
      "{{\"engine\": \"{}\", \"model\": \"{}\", \"precision\": \"{}\", \"batch\": {}, \"threads\": {}, "
      "\"measured_kernels\": {}, \"steps\": \"{}\", "
      "\"images_per_s\": {:.2f}, \"step_ms\": {:.2f}, \"forward_ms\": {:.2f}, \"backward_ms\": {:.2f}, "
      "\"update_ms\": {:.2f}, \"cpu_ms\": {:.2f}, \"host_ms\": {:.3f}, \"compile_ms\": {:.1f}, "
      "\"planned_mb\": {:.1f}, \"loss\": {}, \"steps_s\": "
      "[{}]}}\n",
      engine.name(), options.model, options.precision, options.batch, options.threads, options.measured,
      way_of_steps(engine), options.batch / step_s, step_s * 1e3, median(times.forward_s) * 1e3,
      median(times.backward_s) * 1e3, median(times.update_s) * 1e3, median(times.cpu_s) * 1e3,
      median(times.host_s) * 1e3, compile_s * 1e3, static_cast<double>(engine.plan().total_bytes()) / 1e6,
      times.loss == times.loss ? fmt::format("{:.6f}", times.loss) : std::string("null"), samples);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  const Options options = parse(argc, argv);
  graph::Shape shape = options.model == "mnist-cnn"  ? graph::Shape{1, 28, 28}
                       : options.model == "resnet18" ? graph::Shape{3, 224, 224}
                                                     : graph::Shape{3, 32, 32};
  if (options.size > 0) shape.height = shape.width = options.size;
  const graph::Graph graph = graph::make_model(options.model, shape, 10, 0);
  const engine::UpdateRule rule{.momentum = 0.9, .weight_decay = 5e-4};
  engine::CompileOptions how{
      .batch = options.batch,
      .precision = options.precision == "bf16" ? engine::Precision::bf16 : engine::Precision::f32,
      .threads = options.threads,
      .rule = rule,
      .all_workers_say = [](std::string_view) { return true; },  // as in training
      .stored_images = engine::keeps_images(options.device) ? options.batch : 0,
      .captures = options.captured};
  const auto kernels = engine::prepare(options.device, graph, how, {.is_measured = options.measured});
  if (!kernels.note.empty()) fmt::print(stderr, "{}\n", kernels.note);
  how.algorithms = kernels.algorithms;
  const auto started = base::Clock::now();
  const auto engine = engine::compile(options.device, graph, how);
  graph::initialise(graph, engine->layout(), 0, engine->weights());
  engine->weights_changed();
  const double compile_s = base::seconds_since(started);

  base::Rng rng(0, base::Purpose::test);
  std::vector<float> images;
  std::vector<base::SampleDraw> draws;
  const auto pixels = static_cast<std::size_t>(options.batch * shape.elements());
  if (how.stored_images > 0) {
    store_images(*engine, pixels, rng);
    for (int i = 0; i < options.batch; ++i) draws.push_back({.index = i});
  } else {
    images.resize(pixels);
    for (float& pixel : images) pixel = rng.normal();
  }
  std::vector<std::int32_t> labels(static_cast<std::size_t>(options.batch));
  for (auto& label : labels) label = static_cast<std::int32_t>(rng.below(10));

  const std::int64_t whole = engine->layout().elements;
  engine->cut_backward({&whole, 1});  // nobody takes gradients before the end
  engine::StepQueue* const queue = options.by_op ? nullptr : engine->step_queue();
  using Steps = engine::WarmUp::Steps;
  engine->warm_up({.steps = queue != nullptr ? Steps::queued : Steps::waited});

  // The least of the steps: a host that takes the core away is charged to whoever had it.
  constexpr double kNever = 1e9;
  struct OpTime {
    double forward = kNever, backward = kNever;
  };
  std::vector<OpTime> ops(graph.nodes.size());
  base::TimePoint op_began;
  int step = 0;
  if (options.by_op)
    engine->observe([&](int node, engine::Pass pass, bool begin) {
      if (begin) {
        op_began = base::Clock::now();
      } else if (step >= options.warmup) {
        OpTime& time = ops[static_cast<std::size_t>(node)];
        double& least = pass == engine::Pass::forward ? time.forward : time.backward;
        least = std::min(least, base::seconds(base::Clock::now() - op_began));
      }
    });

  const auto take_steps = [&](int count) {
    StepTimes times;
    std::optional<base::TimePoint> last_end;
    int collected = step;
    // A queue's first step has none before it, so that one more is taken.
    for (const int end = step + count + (queue != nullptr ? 1 : 0); step < end; ++step) {
      const engine::StepInput input{.images = images,
                                    .labels = labels,
                                    .gradient_scale = 1.0 / options.batch,
                                    .step = static_cast<std::uint64_t>(step),
                                    .draws = draws};
      if (queue == nullptr) {
        times.take_step(*engine, options, rule, input);
        continue;
      }
      for (; step - collected > queue->lag(); ++collected) times.collect_step(*queue, options, last_end);
      times.post_step(*engine, *queue, rule, input);
    }
    for (; queue != nullptr && collected < step; ++collected) times.collect_step(*queue, options, last_end);
    return times;
  };
  take_steps(options.warmup);
  for (std::string turn; !options.turns || std::getline(std::cin, turn);) {
    print(*engine, options, take_steps(options.steps), compile_s);
    if (!options.turns) break;
  }
  if (options.by_op)
    for (std::size_t node = 0; node < ops.size(); ++node)
      if (ops[node].forward < kNever)  // others are a part of what they were fused with
        fmt::print(stderr, "{:28} forward {:9.3f} ms  backward {:9.3f} ms\n", graph.nodes[node].name,
                   ops[node].forward * 1e3, ops[node].backward * 1e3);
}
