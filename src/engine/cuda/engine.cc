#include "engine/cuda/engine.h"

#include <algorithm>
#include <deque>
#include <utility>

#include "base/error.h"
#include "engine/cuda/host_copies.h"
#include "engine/cuda/input_buffers.h"
#include "engine/cuda/optimizer.h"
#include "engine/cuda/program.h"
#include "engine/cuda/runtime/memory.h"
#include "engine/cuda/sections.h"

namespace paceline::engine::cuda {
namespace {

constexpr std::uint8_t kPoison = 0xff;  ///< NaN as float, as double and as bf16

class CudaEngine final : public Engine {
 public:
  CudaEngine(const graph::Graph& graph, const CompileOptions& options, std::unique_ptr<Runtime> runtime,
             const EngineSettings& settings)
      : settings_(settings),
        runtime_(std::move(runtime)),
        compute_(runtime_->make_stream()),
        copies_(runtime_->make_stream()),
        loss_is_there_(runtime_->make_event()),
        program_(graph, options, *runtime_),
        plan_(plan_of(program_, runtime_->facts())),
        memory_(*runtime_, compute_, settings.name),
        inputs_(*runtime_, copies_, program_.graph(), program_.layout(), options),
        reports_(*runtime_, compute_),
        stored_(*runtime_, memory_, program_.graph(), options.stored_images),
        gradients_(gradient_memory(program_.options(), layout(), memory_, kVoteFloats)),
        arrays_(allocate_arrays(*runtime_, program_, gradients_.data.get())),
        host_(*runtime_, compute_, arrays_, layout().elements),
        exec_(make_context()),
        optimizer_(program_, *runtime_, compute_, memory_, exec_.memory, arrays_, reports_, inputs_),
        sections_(*runtime_, compute_, program_.options().captures, why_eager(program_)),
        backward_sections_(cut_backward_pass(program_, {})) {
    for (const auto& entry : program_.ops()) entry.op->start(exec_);
    weights_changed();  // copies the host's arrays, which are 0, to the device, and waits
  }

  [[nodiscard]] std::string name() const override { return settings_.name; }
  [[nodiscard]] const graph::Graph& graph() const override { return program_.graph(); }
  [[nodiscard]] const graph::Layout& layout() const override { return program_.layout(); }
  [[nodiscard]] const graph::MemoryPlan& plan() const override { return plan_; }

  std::span<float> weights() override { return host_.weights(); }
  std::span<float> optimizer_state(int slot) override { return host_.state(slot); }
  base::Array weights_array() override { return {arrays_.weights, flat_bytes() / sizeof(float), &memory_}; }
  base::Array gradients() override {
    return gradients_.array().subarray(0, gradients_.size == 0 ? 0 : flat_bytes() / sizeof(float));
  }

  void fetch() override {
    if (host_.are_current()) return;
    host_.read_device();
    settle();
    host_.become_current(true);
  }
  void weights_changed() override {
    base::expects(host_.are_current(),
                  "weights are fetched before they are written: the update would be lost");
    base::expects(reports_.is_empty(), "all steps are collected before weights are written");
    runtime_->fill_bytes(compute_, reports_.is_halted(), 0, sizeof(std::int32_t));
    host_.write_device();
    optimizer_.pack();
    settle();  // so that the caller may write them again
  }

  [[nodiscard]] std::optional<LossScale> loss_scale() const override { return host_.loss_scale(); }
  void set_loss_scale(const LossScale& scale) override { host_.set_loss_scale(scale); }

  [[nodiscard]] std::optional<DeviceMemoryUse> device_memory() const override {
    const DeviceFacts facts = runtime_->facts();
    if (!facts.is_gpu) return std::nullopt;
    const std::int64_t used = facts.memory_bytes - facts.free_memory_bytes;
    return DeviceMemoryUse{std::to_string(facts.index), facts.memory_bytes, used, facts.allocated_bytes};
  }

  LossSums forward(const StepInput& input) override {
    begin_training_pass(input);
    run_forward(inputs_.put(input, compute_));
    return wait_for_loss();
  }

  LossSums evaluate(std::span<const float> images, std::span<const std::int32_t> labels, int count, int views,
                    std::span<double> logits) override {
    return evaluate_input({.images = images, .labels = labels}, count, views, logits);
  }
  LossSums evaluate_draws(std::span<const base::SampleDraw> draws, std::span<const std::int32_t> labels,
                          int count, int views, std::span<double> logits) override {
    return evaluate_input({.images = {}, .labels = labels, .draws = draws}, count, views, logits);
  }
  void set_byte_values(std::span<const float> values) override { stored_.set_byte_values(values); }
  void store_images(std::int64_t first, std::span<const std::uint8_t> pixels) override {
    stored_.store(first, pixels);
  }

  void cut_backward(std::span<const std::int64_t> ends) override {
    backward_sections_ = cut_backward_pass(program_, ends);
    sections_.forget_backward();
  }

  void warm_up(const WarmUp& coming) override {
    fetch();  // what the host has is put back
    runtime_->seal(false);
    stored_.blacken(true);
    work_on_black_images(*this, program_.options(), coming);  // launch by launch
    sections_.capture_new(true);
    if (sections_.captures()) work_on_black_images(*this, program_.options(), coming);
    sections_.capture_new(false);
    stored_.blacken(false);
    host_.become_current(true);
    weights_changed();
    runtime_->set_step(-1);
    runtime_->seal(true);
  }

  void backward(const GradientReady& on_ready) override {
    base::expects(has_forward_, "backward follows a training forward");
    has_forward_ = false;  // backward overwrites activations, so it cannot run twice
    if (settings_.poison) poison_gradients();
    int part = 0;
    std::int64_t done = 0;
    for (const BackwardSection& section : backward_sections_) {
      run_section({.part = SectionPart::backward, .number = part++}, "backward", [&] {
        for (int op = section.first_op; op >= section.last_op; --op)
          run_op(program_.ops()[static_cast<std::size_t>(op)], Pass::backward);
        optimizer_.unscale(done, section.ready);
      });
      done = std::max(done, section.ready);
      if (section.ready > 0 && on_ready) on_ready(section.ready);
    }
    if (reports_.is_open()) reports_.mark(Stage::backward);
  }

  void update(const UpdateRule& rule, double lr, std::int64_t update) override {
    base::expects(reports_.is_empty(), "all steps are collected before an update that is not in the queue");
    optimizer_.put_numbers({.rule = rule, .lr = lr, .number = update});
    run_update(false);
  }

  double gradient_squares(std::int64_t begin, std::int64_t end) override {
    double* const sum = reports_.squares(SquaresOf::passes);
    runtime_->fill_bytes(compute_, sum, 0, sizeof *sum);
    optimizer_.add_squares(begin, end, sum);
    return *reports_.wait_for_report().squares;
  }
  double gradient_norm() override { return reports_.wait_for_report().gradient_norm; }

  StepQueue* step_queue() override { return program_.options().training ? &queue_ : nullptr; }

  void observe(OpObserver observer) override { observer_ = std::move(observer); }

  [[nodiscard]] std::vector<KernelChoice> kernels() const override {
    std::vector<KernelChoice> choices;
    for (const auto& entry : program_.ops()) entry.op->describe(choices);
    if (program_.options().training) {
      choices.push_back(own_kernel("update, packing weights"));
      choices.push_back(sections_.describe());
    }
    return choices;
  }

  std::vector<KernelChoice> measured_kernels() override {
    if (program_.options().training && runtime_->facts().is_gpu) warm_up({.steps = WarmUp::Steps::waited});
    return kernels();
  }

 private:
  class Queue final : public StepQueue {
   public:
    explicit Queue(CudaEngine& engine) : engine_(engine), reports_(engine.reports_) {}

    [[nodiscard]] int lag() const override { return StepReports::kLag; }
    base::Array gradients_and_votes() override { return engine_.gradients_.array(); }
    void mark(Stage until) override { reports_.mark(until); }

    void forward(const StepInput& input, StepFlags flags, const StepUpdate& update) override {
      const bool is_first_pass = !reports_.is_open();
      if (is_first_pass) {
        reports_.open();
        ends_.push_back({});
      }
      reports_.mark(Stage::gap);
      engine_.begin_training_pass(input);
      const auto batch = engine_.inputs_.put(input, engine_.compute_,
                                             {.flags = flags,
                                              .is_first_pass = is_first_pass,
                                              .report = reports_.of_open_step(),
                                              .update = engine_.optimizer_.numbers_of(update)});
      reports_.mark(Stage::copy);
      engine_.run_forward(batch);
      reports_.mark(Stage::forward);
      ends_.back().samples += engine_.exec_.samples;
    }

    void add_squares(SquaresOf of, std::int64_t begin, std::int64_t end) override {
      if (of == SquaresOf::sums) reports_.mark(Stage::transfer);
      engine_.optimizer_.add_squares(begin, end, reports_.squares(of));
    }
    void update() override {
      reports_.mark(Stage::transfer);
      engine_.run_update(true);
      ends_.back().puts = engine_.inputs_.puts();
      reports_.close();
    }

    [[nodiscard]] QueuedStep collect() override {
      QueuedStep step = reports_.collect();
      const End end = ends_.front();
      ends_.pop_front();
      step.local.samples = end.samples;
      engine_.inputs_.have_been_read(end.puts);
      return step;
    }

   private:
    struct End {
      std::int64_t samples = 0;  ///< of the step
      std::int64_t puts = 0;     ///< InputBuffers::puts() at the step's end
    };
    CudaEngine& engine_;
    StepReports& reports_;
    std::deque<End> ends_;  ///< of the steps that were not collected
  };

  [[nodiscard]] std::int64_t sample_elements() const { return program_.graph().input_shape().elements(); }
  [[nodiscard]] bool is_storing() const { return program_.options().stored_images > 0; }
  [[nodiscard]] std::size_t flat_bytes() const {
    return static_cast<std::size_t>(layout().elements) * sizeof(float);
  }

  ExecContext make_context() {
    const MemoryRequests& requests = program_.memory();
    const auto area = [&](std::int64_t bytes) { return runtime_->allocate(static_cast<std::size_t>(bytes)); };
    pinned_loss_ = reinterpret_cast<LossResult*>(runtime_->allocate_pinned(sizeof(LossResult)));
    return {.options = program_.options(),
            .runtime = *runtime_,
            .compute = compute_,
            .memory = {.requests = &requests,
                       .arena = area(requests.arena_bytes()),
                       .kept = area(requests.kept_bytes()),
                       .scratch = area(requests.scratch_bytes())},
            .weights = arrays_.weights,
            .gradients = arrays_.gradients,
            .stored = stored_.images(),
            .byte_values = stored_.byte_values(),
            .loss_scale = arrays_.loss_scale == nullptr ? nullptr : &arrays_.loss_scale->state,
            .pinned = reinterpret_cast<double*>(
                runtime_->allocate_pinned(static_cast<std::size_t>(program_.pinned_bytes()))),
            .loss = reinterpret_cast<LossResult*>(runtime_->allocate(sizeof(LossResult)))};
  }

  /// Waits for the compute stream.
  void settle() {
    runtime_->synchronize(compute_);
    memory_.has_settled();
    inputs_.have_been_read(inputs_.puts());
  }

  void poison(const void* memory, std::size_t bytes) {
    runtime_->fill_bytes(compute_, const_cast<void*>(memory), kPoison, bytes);
  }
  void poison_gradients() {
    for (const graph::Slot& slot : layout().slots)  // the padding between slots stays zero
      poison(arrays_.gradients + slot.offset, static_cast<std::size_t>(slot.elements) * sizeof(float));
  }

  void run_op(const Program::Entry& entry, Pass pass) {
    const int node = entry.group.node;
    runtime_->set_op(graph().nodes[static_cast<std::size_t>(node)].name);
    if (observer_) observer_(node, pass, true);
    pass == Pass::forward ? entry.op->forward(exec_) : entry.op->backward(exec_);
    if (observer_) {
      settle();  // so that the time between the calls is that of the op
      observer_(node, pass, false);
    }
    runtime_->set_op("");
  }

  /// Runs a section. With an observer, ops run one by one and the host waits after each, so nothing is
  /// captured.
  void run_section(const Section& section, const char* name, const std::function<void()>& post) {
    observer_ ? post() : sections_.run(section, name, post);
  }

  void begin_training_pass(const StepInput& input) {
    const int batch = program_.options().batch;
    const std::int64_t images = is_storing() ? 0 : batch * sample_elements();
    base::expects(program_.options().training, "the engine was compiled for training");
    base::expects(std::ssize(input.labels) == batch && std::ssize(input.images) == images &&
                      std::ssize(input.draws) == (is_storing() ? batch : 0),
                  "a step has as many images, or draws, and labels as the engine's batch");
    require_second_labels(input, batch, program_.options().has_two_labels);
    if (is_storing()) stored_.check(input.draws);
    runtime_->set_step(static_cast<std::int64_t>(input.step));
    exec_.training = true;
    exec_.samples = batch;
    exec_.views = 1;
    has_forward_ = true;
  }

  void run_forward(const InputBuffers::Batch& batch) {
    exec_.images = batch.images;
    exec_.draws = batch.draws;
    exec_.labels = batch.labels;
    exec_.second_labels = batch.second_labels;
    exec_.numbers = batch.numbers;
    if (settings_.poison) {
      poison(exec_.memory.arena, static_cast<std::size_t>(program_.memory().arena_bytes()));
      poison(exec_.memory.scratch, static_cast<std::size_t>(program_.memory().scratch_bytes()));
    }
    // Images from the host lie elsewhere in the next pass, so no section reads them.
    auto ops = std::span(program_.ops());
    if (!is_storing()) {
      run_op(ops.front(), Pass::forward);
      ops = ops.subspan(1);
    }
    const auto post = [&] {
      for (const auto& entry : ops) run_op(entry, Pass::forward);
      if (!exec_.training) return;
      runtime_->set_op("votes");  // not read if the step is not queued
      exec_.launch(WriteVotes{
          .result = exec_.loss, .numbers = exec_.numbers, .report = reports_.on_device(), .votes = votes()});
      runtime_->set_op("");
    };
    if (exec_.training)
      run_section({.part = SectionPart::forward}, "forward", post);
    else if (is_full())
      run_section({.part = SectionPart::evaluation, .number = exec_.views}, "evaluation", post);
    else
      post();
  }
  /// Whether the batch is full. Kernels contain the number of samples, and only the last batch of an
  /// evaluation is short, so only full batches are captured.
  [[nodiscard]] bool is_full() const { return exec_.samples + exec_.views > program_.options().batch; }
  [[nodiscard]] float* votes() const { return gradients_.data.get() + layout().elements; }

  /// Waits for the sums of the last forward pass.
  LossSums wait_for_loss() {
    base::expects(reports_.is_empty(), "all steps are collected before a forward that waits");
    runtime_->record(loss_is_there_, compute_);
    runtime_->wait(copies_, loss_is_there_);
    runtime_->copy_to_host(copies_, pinned_loss_, exec_.loss, sizeof(LossResult));
    runtime_->synchronize(copies_);
    memory_.has_settled();  // the loss was the last item of the compute stream
    inputs_.have_been_read(inputs_.puts());
    return {
        .loss = pinned_loss_->loss, .correct = pinned_loss_->correct, .samples = exec_.samples / exec_.views};
  }

  void run_update(bool is_judged) {
    runtime_->set_op("update");
    run_section({.part = SectionPart::update, .number = is_judged ? 1 : 0}, "update", [&] {
      if (is_judged)
        exec_.launch(JudgeVotes{.votes = votes(),
                                .numbers = inputs_.step_numbers(),
                                .report = reports_.on_device(),
                                .is_halted = reports_.is_halted()});
      optimizer_.update();
    });
    runtime_->set_op("");
    host_.become_current(false);
  }

  /// Evaluates `count` samples of `given`.
  LossSums evaluate_input(StepInput given, int count, int views, std::span<double> logits) {
    base::expects(logits.empty() || static_cast<std::int64_t>(logits.size()) >=
                                        std::int64_t{1} * count * program_.graph().classes(),
                  "there is room for the logits of every sample");
    const auto elements = static_cast<std::size_t>(is_storing() ? 1 : sample_elements());
    base::expects(count >= 0 && views >= 1 && count * views <= program_.options().batch,
                  "evaluate gets at most a batch");
    const std::size_t wanted = static_cast<std::size_t>(count * views) * elements;
    base::expects(given.labels.size() >= static_cast<std::size_t>(count) &&
                      (is_storing() ? given.draws.size() : given.images.size()) >= wanted,
                  "evaluate gets images, or draws where the engine keeps images, and labels of all samples");
    given.labels = given.labels.first(static_cast<std::size_t>(count));
    if (is_storing())
      given.draws = given.draws.first(wanted);
    else
      given.images = given.images.first(wanted);
    if (count == 0) return {};
    exec_.training = false;
    exec_.samples = count * views;
    exec_.views = views;
    has_forward_ = false;
    base::expects(reports_.is_empty(), "all steps are collected before an evaluation");
    if (is_storing()) stored_.check(given.draws);
    run_forward(inputs_.put(given, compute_));
    const auto sums = wait_for_loss();
    if (!logits.empty()) logits_.read(program_, exec_, count, views, logits);
    return sums;
  }

  const EngineSettings settings_;
  const std::unique_ptr<Runtime> runtime_;
  const Stream compute_, copies_;
  const Event loss_is_there_;
  const Program program_;
  const graph::MemoryPlan plan_;
  const DeviceMemory memory_;
  InputBuffers inputs_;
  StepReports reports_;
  StoredImages stored_;
  const base::OwnedArray gradients_;
  const FlatArrays arrays_;
  HostCopies host_;
  LossResult* pinned_loss_ = nullptr;
  ExecContext exec_;
  Optimizer optimizer_;
  LogitsReader logits_;
  Sections sections_;
  std::vector<BackwardSection> backward_sections_;
  bool has_forward_ = false;
  OpObserver observer_;
  Queue queue_{*this};
};

}  // namespace

std::unique_ptr<Engine> compile(const graph::Graph& graph, const CompileOptions& options,
                                std::unique_ptr<Runtime> runtime, const EngineSettings& settings) {
  return std::make_unique<CudaEngine>(graph, options, std::move(runtime), settings);
}

graph::MemoryPlan plan(const graph::Graph& graph, const CompileOptions& options, Runtime& runtime) {
  return plan_of(Program(graph, options, runtime), runtime.facts());
}

}  // namespace paceline::engine::cuda
