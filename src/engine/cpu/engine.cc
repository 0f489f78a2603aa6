#include "engine/cpu/engine.h"

#include <fmt/core.h>
#include <omp.h>

#include <algorithm>
#include <limits>
#include <map>
#include <oneapi/dnnl/dnnl.hpp>
#include <utility>
#include <vector>

#include "base/buffer.h"
#include "base/error.h"
#include "base/file.h"
#include "base/rng.h"
#include "base/shared_library.h"
#include "base/topology.h"
#include "engine/cpu/conv/default_table.h"
#include "engine/cpu/conv/onednn.h"
#include "engine/cpu/conv/plan.h"
#include "engine/cpu/kernels/isa.h"
#include "engine/cpu/ops/factories.h"
#include "engine/cpu/optimizer/update.h"
#include "engine/cpu/optimizer/weight_passes.h"
#include "engine/cpu/parallel.h"
#include "engine/cpu/processor_kind.h"
#include "engine/cpu/program.h"
#include "engine/kernel_cache.h"

namespace paceline::engine::cpu {
namespace {

base::Buffer zeros(std::int64_t bytes) {
  base::Buffer buffer(static_cast<std::size_t>(bytes));
  buffer.fill_zero();
  return buffer;
}

/// The row of `doctor --kernels` for what happens to the weights once an update.
constexpr const char* kUpdate = "update, packing weights";

class CpuEngine final : public Engine {
 public:
  CpuEngine(const graph::Graph& graph, const CompileOptions& options, const Tuning& tuning)
      : program_(graph, options, tuning),
        plan_(program_.plan()),
        arena_(static_cast<std::size_t>(program_.memory().arena_bytes())),
        kept_(static_cast<std::size_t>(program_.memory().kept_bytes())),
        scratch_(static_cast<std::size_t>(program_.memory().scratch_bytes())),
        weights_(zeros(flat_bytes())),
        gradients_(gradient_memory(options, program_.layout())),
        pool_(options.threads, [] { omp_set_num_threads(1); }),
        exec_{.options = program_.options(),
              .kernels = kernels_for(*program_.tuning().isa),
              .pool = pool_,
              .memory = {.requests = &program_.memory(),
                         .arena = arena_.data(),
                         .kept = kept_.data(),
                         .scratch = scratch_.data()},
              .weights = weights_.as<float>().data(),
              .gradients = gradients_.data.get()},
        weight_passes_(program_),
        slot_done_(program_.layout().slots.size()) {
    if (!options.training) return;
    for (int slot = 0; slot < state_slots(options.rule); ++slot) state_.push_back(zeros(flat_bytes()));
    // Different processors may use kernels with different gradient orders; such gradients must not be added
    // directly.
    // LAMB reads a gradient beside its weight before update() can reorder it.
    exec_.own_gradient_order = options.rule.kind != UpdateKind::lamb && options.all_workers_say &&
                               options.all_workers_say(own_gradient_orders());
  }

  [[nodiscard]] std::string name() const override { return "cpu"; }
  [[nodiscard]] const graph::Graph& graph() const override { return program_.graph(); }
  [[nodiscard]] const graph::Layout& layout() const override { return program_.layout(); }
  [[nodiscard]] const graph::MemoryPlan& plan() const override { return plan_; }

  std::span<float> weights() override { return weights_.as<float>(); }
  base::Array gradients() override { return gradients_.array(); }
  std::span<float> optimizer_state(int slot) override {
    base::expects(slot >= 0 && slot < static_cast<int>(state_.size()), "the rule keeps this state slot");
    return state_[static_cast<std::size_t>(slot)].as<float>();
  }
  void weights_changed() override {
    const OneThread one_thread;
    weight_passes_.pack(exec_);
  }

  LossSums forward(const StepInput& input) override {
    const int batch = exec_.options.batch;
    base::expects(exec_.options.training, "the engine was compiled for training");
    base::expects(static_cast<int>(input.labels.size()) == batch &&
                      static_cast<std::int64_t>(input.images.size()) == batch * sample_elements(),
                  "a step has as many images and labels as the engine's batch");
    require_second_labels(input, batch, exec_.options.has_two_labels);
    if (program_.tuning().poison) poison();
    exec_.training = true;
    exec_.input = input;
    exec_.samples = batch;
    exec_.views = 1;
    has_forward_ = true;
    return run_forward();
  }

  LossSums evaluate(std::span<const float> images, std::span<const std::int32_t> labels, int count, int views,
                    std::span<double> logits) override {
    base::expects(logits.empty() || static_cast<std::int64_t>(logits.size()) >=
                                        std::int64_t{1} * count * program_.graph().classes(),
                  "there is room for the logits of every sample");
    base::expects(count >= 0 && views >= 1 && count * views <= exec_.options.batch &&
                      static_cast<int>(labels.size()) >= count &&
                      static_cast<std::int64_t>(images.size()) >= count * views * sample_elements(),
                  "evaluate gets at most a batch, and its labels");
    if (count == 0) return {};
    if (program_.tuning().poison) poison();
    exec_.training = false;
    exec_.input = {.images = images, .labels = labels};
    exec_.samples = count * views;
    exec_.views = views;
    exec_.logits = logits;
    has_forward_ = false;
    const LossSums sums = run_forward();
    exec_.logits = {};  // the caller's
    return sums;
  }

  void backward(const GradientReady& on_ready) override {
    base::expects(has_forward_, "backward follows a training forward");
    has_forward_ = false;  // gradients have overwritten activations, so a second backward pass would be wrong
    const OneThread one_thread;
    std::fill(slot_done_.begin(), slot_done_.end(), false);
    std::size_t done_slots = 0;
    std::int64_t told = 0;
    const auto tell = [&] {
      const auto& slots = layout().slots;
      while (done_slots < slots.size() && slot_done_[done_slots]) ++done_slots;
      const std::int64_t ready = done_slots < slots.size() ? slots[done_slots].offset : layout().elements;
      if (ready > told && on_ready) on_ready(ready);
      told = std::max(told, ready);
    };
    for (auto entry = program_.ops().rbegin(); entry != program_.ops().rend(); ++entry) {
      const int node = entry->group.node;
      if (observer_) observer_(node, Pass::backward, true);
      entry->op->backward(exec_);
      if (observer_) observer_(node, Pass::backward, false);
      for (const int parameter : graph().nodes[static_cast<std::size_t>(node)].parameters)
        slot_done_[static_cast<std::size_t>(
            layout().slot_of_parameter[static_cast<std::size_t>(parameter)])] = true;
      tell();
    }
  }

  void update(const UpdateRule& rule, double lr, std::int64_t update) override {
    const OneThread one_thread;
    if (rule.clips()) gradient_norm_ = weight_passes_.clip(exec_, rule);
    weight_passes_.update(exec_, make_update(rule, lr, update));
  }
  double gradient_squares(std::int64_t begin, std::int64_t end) override {
    return weight_passes_.gradient_squares(exec_, begin, end);
  }
  double gradient_norm() override { return gradient_norm_; }

  void observe(OpObserver observer) override { observer_ = std::move(observer); }

  [[nodiscard]] std::vector<KernelChoice> kernels() const override {
    std::vector<KernelChoice> choices;
    for (const auto& entry : program_.ops()) entry.op->describe(exec_, choices);
    if (exec_.options.training) choices.push_back(own_kernel(exec_, kUpdate));
    return choices;
  }

  [[nodiscard]] std::vector<KernelChoice> measured_kernels() override {
    if (!exec_.options.training || exec_.options.reduce_statistics) return kernels();
    // Runs a real step first, so that all buffers hold ordinary numbers.
    std::vector<float> images(static_cast<std::size_t>(exec_.options.batch * sample_elements()));
    base::Rng rng(0, base::Purpose::test);
    for (float& pixel : images) pixel = rng.normal();
    const std::vector<std::int32_t> labels(static_cast<std::size_t>(exec_.options.batch), 0);
    const std::vector<base::SecondLabel> second_labels(exec_.options.has_two_labels ? labels.size() : 0);
    forward({.images = images,
             .labels = labels,
             .gradient_scale = 1.0 / exec_.options.batch,
             .second_labels = second_labels});
    backward({});
    const OneThread one_thread;
    std::vector<KernelChoice> choices;
    for (int op = 0; op < static_cast<int>(program_.ops().size()); ++op)
      program_.ops()[static_cast<std::size_t>(op)].op->measure(exec_, program_.traffic(op), choices);
    exec_.input = {};
    measure_update(choices);
    return choices;
  }

 private:
  /// The names of all weights whose gradients have an order of their own, and of those orders. Gradients stay
  /// in this order as long as the position of an element does not matter: sums over workers and shards are
  /// formed element by element, and update() reorders them in the cache. All rules give the same bits except
  /// LARS and clipping, which sum the squares of a gradient in this order.
  [[nodiscard]] std::string own_gradient_orders() const {
    std::string orders;
    for (const auto& entry : program_.ops())
      if (entry.conv != nullptr && !entry.conv->weights().own_order().empty())
        orders += fmt::format("{}: {}\n", graph().nodes[static_cast<std::size_t>(entry.group.node)].name,
                              entry.conv->weights().own_order());
    return orders;
  }

  /// Measures the costs that do not depend on the batch. The learning rate is zero, but the optimizer's state
  /// changes.
  void measure_update(std::vector<KernelChoice>& choices) {
    const double seconds = seconds_of([&] { update(exec_.options.rule, 0, 1); });
    const auto bytes = static_cast<double>(weight_passes_.update_bytes(static_cast<int>(state_.size())));
    choices.push_back(own_kernel(exec_, kUpdate));
    choices.back().rate = fmt::format("{:.1f} GB/s ({:.1f} MB)", bytes / seconds / 1e9, bytes / 1e6);
  }

  [[nodiscard]] Update make_update(const UpdateRule& rule, double lr, std::int64_t update) {
    UpdateArrays arrays{.weights = exec_.weights, .gradients = exec_.gradients, .state = {}};
    for (auto& state : state_) arrays.state.push_back(state.as<float>().data());
    return {graph(), layout(), exec_.kernels, pool_, rule, lr, update, std::move(arrays)};
  }

  [[nodiscard]] std::int64_t flat_bytes() const {
    return program_.layout().elements * static_cast<std::int64_t>(sizeof(float));
  }
  [[nodiscard]] std::int64_t sample_elements() const { return program_.graph().input_shape().elements(); }

  void poison() {
    std::ranges::fill(arena_.as<std::uint32_t>(), 0x7fffffffu);  // NaN as float and as either half's bf16
    std::ranges::fill(scratch_.as<std::uint32_t>(), 0x7fffffffu);
    if (!exec_.options.training) return;
    for (const graph::Slot& slot : layout().slots)  // the padding between them always stays zero
      std::fill_n(exec_.gradients + slot.offset, slot.elements, std::numeric_limits<float>::quiet_NaN());
  }

  LossSums run_forward() {
    const OneThread one_thread;
    for (auto& entry : program_.ops()) {
      if (observer_) observer_(entry.group.node, Pass::forward, true);
      entry.op->forward(exec_);
      if (observer_) observer_(entry.group.node, Pass::forward, false);
    }
    return exec_.sums;
  }

  Program program_;
  const graph::MemoryPlan plan_;
  base::Buffer arena_, kept_, scratch_, weights_;
  base::OwnedArray gradients_;
  std::vector<base::Buffer> state_;
  base::ThreadPool pool_;
  ExecContext exec_;
  const WeightPasses weight_passes_;
  std::vector<bool> slot_done_;
  bool has_forward_ = false;
  double gradient_norm_ = 0;
  OpObserver observer_;
};

/// A text of everything that decides how fast kernels are: processor, instruction sets, oneDNN, and this
/// build of the program.
std::string machine_here() {
  const auto* version = dnnl_version();
  const std::string_view limit = isa_limit();
  return fmt::format("{}; own {}{}{}; oneDNN {}.{}.{}, instructions {}; {}", base::cpu_info("model name"),
                     name_of(isas_here().back()), limit.empty() ? "" : ", at most ", limit, version->major,
                     version->minor, version->patch, static_cast<unsigned>(dnnl::get_effective_cpu_isa()),
                     base::build_id());
}

using ProblemByKey = std::map<std::string, ConvProblem>;

/// The convolution problems of the network, each once even if several layers have it.
ProblemByKey problems_of(const graph::Graph& graph, const CompileOptions& options) {
  std::vector<ConvProblem> all;
  const Program program(graph, options, {});
  for (const auto& entry : program.ops())
    if (entry.conv != nullptr) entry.conv->plan().list(all);
  ProblemByKey problems;
  for (const ConvProblem& problem : all) problems.emplace(key_of(problem), problem);
  return problems;
}

KernelAlgorithms measure(const ProblemByKey& problems, const std::vector<std::string>& keys) {
  std::vector<ConvProblem> open;
  for (const std::string& key : keys) open.push_back(problems.at(key));
  const auto found = side_by_side(open, autotune);
  KernelAlgorithms algorithms;
  for (std::size_t i = 0; i < keys.size(); ++i) algorithms[keys[i]] = found[i]->name;
  return algorithms;
}

}  // namespace

std::unique_ptr<Engine> compile(const graph::Graph& graph, const CompileOptions& options,
                                const Tuning& tuning) {
  const OneThread one_thread;  // oneDNN chooses its primitives for the number of threads that will call them
  return std::make_unique<CpuEngine>(graph, options, tuning);
}

graph::MemoryPlan plan(const graph::Graph& graph, const CompileOptions& options, const Tuning& tuning) {
  const OneThread one_thread;
  return Program(graph, options, tuning).plan();
}

AutoPrecision auto_precision() {
  if (bf16_products_here() != Bf16Products::in_hardware)
    return {Precision::f32, "this processor has no units for bf16, which would be multiplied as fp32"};
  return prefers(processor_here());
}

PreparedKernels prepare(const graph::Graph& graph, const CompileOptions& options,
                        const KernelRequest& request) {
  const OneThread one_thread;
  const ProblemByKey problems = problems_of(graph, options);
  KernelProblems named{.chosen_by = std::string(default_choices_name()), .defaults = {}, .refusal = {}};
  for (const auto& [key, problem] : problems) named.defaults[key] = default_algorithm(problem).name;
  named.refusal = [&](const std::string& key, const std::string& name) -> std::optional<std::string> {
    const ConvAlgorithm* const algorithm = find_algorithm(name);
    if (algorithm == nullptr) return "is not an algorithm of this version";
    return algorithm->refusal(problems.at(key));
  };
  return choose_kernels(
      named, request,
      {.open_cache =
           [] {
             return KernelCache(base::cache_directory(), machine_here(),
                                [](const std::string& name) { return find_algorithm(name) != nullptr; });
           },
       .measure = [&](const std::vector<std::string>& keys) { return measure(problems, keys); }});
}

}  // namespace paceline::engine::cpu
