#include "engine/cuda/cudnn/plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "base/error.h"

namespace paceline::engine::cuda::cudnn {
namespace {

template <typename Note>
bool has(const std::vector<int>& notes, Note note) {
  return std::find(notes.begin(), notes.end(), static_cast<int>(note)) != notes.end();
}

/// More knobs than any engine of cuDNN 9.19 has.
constexpr std::int64_t kMostKnobs = 24;
/// The number of engines that are tried before the whole list is read.
constexpr std::int64_t kFirstRead = 4;

std::string knobs_of(const Descriptor& config) {
  std::string text;
  for (const Descriptor& choice :
       config.descriptors(Attribute::engine_config_knob_choices, DescriptorType::knob_choice, kMostKnobs))
    text += fmt::format("{}{}={}", text.empty() ? "" : " ",
                        choice.enumeration(Attribute::knob_choice_type, AttributeType::knob_type),
                        choice.integer(Attribute::knob_choice_value));
  return text;
}

EngineFacts facts_of(const Descriptor& config) {
  const Descriptor engine = config.descriptor(Attribute::engine_config_engine, DescriptorType::engine);
  const std::vector<int> numerical =
      engine.notes(Attribute::engine_numerical_notes, AttributeType::numerical_note, kNumericalNotes);
  const std::vector<int> behavior =
      engine.notes(Attribute::engine_behavior_notes, AttributeType::behavior_note, kBehaviorNotes);
  return {.index = engine.integer(Attribute::engine_global_index),
          .knobs = knobs_of(config),
          .deterministic = !has(numerical, NumericalNote::nondeterministic),
          .tensor_cores = has(numerical, NumericalNote::tensor_core),
          .reduces_precision = has(numerical, NumericalNote::down_convert_inputs) ||
                               has(numerical, NumericalNote::reduced_precision_reduction),
          .transforms = has(numerical, NumericalNote::winograd) || has(numerical, NumericalNote::fft),
          .compiled_at_run_time = has(behavior, BehaviorNote::compiled_at_run_time)};
}

/// The order in which the heuristics are asked.
constexpr HeuristicsMode kModes[] = {HeuristicsMode::b, HeuristicsMode::a, HeuristicsMode::fallback};

/// Makes plans for one convolution, and keeps the reasons why engines were refused.
class Planner {
 public:
  Planner(const TargetDevice& device, const ConvProblem& problem, std::size_t workspace_limit)
      : device_(device),
        problem_(problem),
        workspace_limit_(workspace_limit),
        graph_(std::make_shared<const ConvGraph>(make_conv_graph(device, problem, conv_tensors(problem)))) {}

  [[nodiscard]] EngineList engines(HeuristicsMode mode) const { return {device_, *graph_, mode}; }

  /// Calls visit(config) for one engine after the other until it returns a plan, and returns that.
  template <typename Visit>
  std::optional<Plan> first_of_engines(const Visit& visit) const {
    for (const HeuristicsMode mode : kModes) {
      const EngineList list = engines(mode);
      // Reading the whole list takes most of the time, and usually one of the first engines is wanted.
      std::size_t tried = 0;
      for (const std::int64_t most : {kFirstRead, list.count()}) {
        std::vector<EngineConfig> configs = list.first(most);
        for (; tried < configs.size(); ++tried)
          if (auto plan = visit(std::move(configs[tried]))) return plan;
        if (most >= list.count()) break;
      }
    }
    return std::nullopt;
  }

  /// Empty if the engine does not qualify.
  std::optional<Plan> plan(EngineConfig config) {
    if (const auto reason = refusal(config.facts, problem_.precision)) return refuse(*reason);
    Descriptor plan(graph_->graph.site(), DescriptorType::execution_plan);
    device_.apply_to_plan(plan);
    plan.set(Attribute::plan_engine_config, config.descriptor);
    // Some engines refuse a shape only here. If memory runs out or the device fails, this throws instead of
    // trying the next engine, so that all workers choose the same one. An engine that is compiled at run time
    // fails as if the device did where its compiler is newer than the driver; the runtime asks the device.
    const Status status = plan.try_finalize();
    const bool fails_to_compile = config.facts.compiled_at_run_time && failed_to_execute(status);
    if (fails_to_compile)
      passed_over_.push_back({.problem = describe(problem_),
                              .algorithm = algorithm_of(device_.api(), config.facts),
                              .why = "cannot be compiled: " + error_text(device_.api(), status)});
    const bool is_of_the_device = lacks_memory(status) || failed_to_execute(status);
    if (status != kSuccess && (fails_to_compile || !is_of_the_device))
      return refuse(error_text(device_.api(), status));
    check(device_.api(), status, "cudnnBackendFinalize of an execution plan", describe(problem_));
    const auto workspace = static_cast<std::size_t>(plan.integer(Attribute::plan_workspace_size));
    if (workspace > workspace_limit_) {
      left_out_.push_back(
          fmt::format("{} ({} MB)", algorithm_of(device_.api(), config.facts), workspace >> 20));
      return refuse(fmt::format("more than {} MB beside its operands", workspace_limit_ >> 20));
    }
    Plan made{.engine = std::move(config.facts),
              .workspace_bytes = workspace,
              .graph = graph_,
              .descriptors = {},
              .passed_over = passed_over_};
    made.descriptors.push_back(std::move(config.descriptor));
    made.descriptors.push_back(std::move(plan));
    return made;
  }

  [[nodiscard]] const std::vector<std::string>& left_out() const { return left_out_; }
  /// Why the last engine was refused; empty if none was.
  [[nodiscard]] const std::string& last_reason() const { return last_reason_; }

  [[noreturn]] void fail() const {
    std::string reasons;
    for (const auto& [reason, count] : refused_)
      reasons += fmt::format("{}{} for {}", reasons.empty() ? "engines were refused, " : ", ", count, reason);
    base::fail(
        base::ErrorKind::device,
        "cuDNN {} has no engine that qualifies for convolution ({}): {}; try another batch or precision",
        cudnn_version(device_.api()), describe(problem_),
        reasons.empty() ? "its heuristics propose none" : reasons);
  }

 private:
  std::nullopt_t refuse(const std::string& reason) {
    ++refused_[reason];
    last_reason_ = reason;
    return std::nullopt;
  }

  const TargetDevice& device_;
  ConvProblem problem_;
  std::size_t workspace_limit_;
  std::shared_ptr<const ConvGraph> graph_;
  std::map<std::string, int> refused_;
  std::string last_reason_;
  std::vector<std::string> left_out_;
  std::vector<PassedOver> passed_over_;
};

}  // namespace

std::optional<std::string> refusal(const EngineFacts& engine, Precision precision) {
  if (!engine.deterministic) return "other bits each time";
  if (engine.reduces_precision) return "computing in less than fp32";
  if (precision == Precision::f32 && engine.transforms) return "fewer digits (Winograd or FFT)";
  if (precision == Precision::f32 && engine.tensor_cores) return "TF32 (they use tensor cores)";
  return std::nullopt;
}

EngineList::EngineList(const TargetDevice& device, const ConvGraph& graph, HeuristicsMode mode)
    : heuristics_(graph.graph.site(), DescriptorType::heuristics) {
  heuristics_.set(Attribute::heuristics_operation_graph, graph.graph).set(Attribute::heuristics_mode, mode);
  device.apply_to_heuristics(heuristics_);
  heuristics_.finalize();
  count_ = heuristics_.count_of(Attribute::heuristics_results);
}

std::vector<EngineConfig> EngineList::first(std::int64_t most) const {
  std::vector<EngineConfig> configs;
  for (Descriptor& config : heuristics_.descriptors(Attribute::heuristics_results,
                                                    DescriptorType::engine_config, std::min(most, count_))) {
    EngineFacts facts = facts_of(config);
    configs.push_back({std::move(config), std::move(facts)});
  }
  return configs;
}

Plan first_plan(const TargetDevice& device, const ConvProblem& problem, std::size_t workspace_limit) {
  Planner planner(device, problem, workspace_limit);
  std::vector<EngineConfig> slow_to_plan;
  auto found = planner.first_of_engines([&](EngineConfig config) -> std::optional<Plan> {
    if (!config.facts.compiled_at_run_time) return planner.plan(std::move(config));
    slow_to_plan.push_back(std::move(config));
    return std::nullopt;
  });
  if (found) return std::move(*found);
  for (EngineConfig& config : slow_to_plan)
    if (auto plan = planner.plan(std::move(config))) return std::move(*plan);
  planner.fail();
}

std::vector<Plan> plans_to_measure(const TargetDevice& device, const ConvProblem& problem,
                                   std::size_t workspace_limit, std::size_t most,
                                   std::vector<std::string>* left_out) {
  Planner planner(device, problem, workspace_limit);
  // Read twice as many, since some do not qualify or are listed twice.
  const auto read = static_cast<std::int64_t>(2 * most);
  std::vector<EngineConfig> by_b = planner.engines(HeuristicsMode::b).first(read);
  std::vector<EngineConfig> by_a = planner.engines(HeuristicsMode::a).first(read);
  std::vector<EngineConfig> in_turn;
  for (std::size_t i = 0; i < std::max(by_a.size(), by_b.size()); ++i) {
    if (i < by_b.size()) in_turn.push_back(std::move(by_b[i]));
    if (i < by_a.size()) in_turn.push_back(std::move(by_a[i]));
  }
  for (EngineConfig& config : planner.engines(HeuristicsMode::fallback).all())
    in_turn.push_back(std::move(config));
  std::vector<EngineFacts> seen;
  std::vector<Plan> plans;
  for (EngineConfig& config : in_turn) {
    if (plans.size() == most) break;
    if (std::find(seen.begin(), seen.end(), config.facts) != seen.end()) continue;
    seen.push_back(config.facts);
    if (auto plan = planner.plan(std::move(config))) plans.push_back(std::move(*plan));
  }
  if (plans.empty()) planner.fail();
  if (left_out != nullptr) *left_out = planner.left_out();
  return plans;
}

std::string algorithm_of(const CudnnApi& api, const EngineFacts& engine) {
  std::string knobs = engine.knobs;
  std::ranges::replace(knobs, ' ', ',');
  return fmt::format("cudnn-{}-engine-{}{}", cudnn_version(api), engine.index,
                     knobs.empty() ? "" : fmt::format("({})", knobs));
}

Plan named_plan(const TargetDevice& device, const ConvProblem& problem, const std::string& algorithm,
                std::size_t workspace_limit) {
  const std::string version = cudnn_version(device.api());
  if (!algorithm.starts_with("cudnn-"))
    throw AlgorithmRefused(problem, algorithm, "is not an algorithm of GPUs");
  if (!algorithm.starts_with(fmt::format("cudnn-{}-", version)))
    throw AlgorithmRefused(problem, algorithm,
                           fmt::format("is of another version than cuDNN {} here", version));
  Planner planner(device, problem, workspace_limit);
  auto found = planner.first_of_engines([&](EngineConfig config) -> std::optional<Plan> {
    if (algorithm_of(device.api(), config.facts) != algorithm) return std::nullopt;
    auto plan = planner.plan(std::move(config));
    if (!plan) throw AlgorithmRefused(problem, algorithm, "was refused: " + planner.last_reason());
    return plan;
  });
  if (found) return std::move(*found);
  throw AlgorithmRefused(problem, algorithm,
                         fmt::format("is not an engine that cuDNN {} proposes for it", version));
}

}  // namespace paceline::engine::cuda::cudnn
