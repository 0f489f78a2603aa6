#include "engine/cuda/prepare.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <map>
#include <memory>
#include <optional>
#include <utility>

#include "base/clock.h"
#include "base/file.h"
#include "base/shared_library.h"
#include "base/text.h"
#include "engine/cuda/conv_problem.h"
#include "engine/cuda/program.h"
#include "engine/cuda/runtime/device_runtime.h"
#include "engine/kernel_cache.h"

namespace paceline::engine::cuda {
namespace {

/// Another algorithm must take less than this fraction of the default's time. Otherwise noise would decide
/// near ties, and change bits.
constexpr double kClearlyFaster = 0.95;
constexpr int kRounds = 7, kLeastRounds = 3;
constexpr int kRunsOfRound = 3;   ///< runs between two events; their distance is exact to about 0.5 us
constexpr double kEnough = 0.25;  ///< seconds for each problem; more rounds would not help
/// 0.0115 as float and as bf16. Zeros and denormals would have a different speed.
constexpr std::uint8_t kByte = 0x3c;

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

/// Problems that are measured between two writes of the cache; this takes up to a second.
constexpr std::size_t kPortion = 4;

/// The cache's name for this machine: kind and size of the device (a part of a GPU is a different device),
/// libraries, build of this program.
std::string machine_of(const DeviceFacts& facts) {
  return fmt::format("{}, {} multiprocessors, {}; {}", facts.name, facts.multiprocessors, facts.libraries,
                     base::build_id());
}

/// The end of a note about algorithms that were not measured because they need too much workspace.
std::string sentence_of(const std::vector<std::string>& left_out, std::size_t limit) {
  if (left_out.empty()) return "";
  constexpr std::size_t kNamed = 4;
  std::string text = fmt::format(
      "; {} not measured, for {} would take more than {} MB beside {} operands:",
      left_out.size() == 1 ? "one algorithm was" : fmt::format("{} algorithms were", left_out.size()),
      left_out.size() == 1 ? "it" : "they", limit >> 20, left_out.size() == 1 ? "its" : "their");
  for (std::size_t i = 0; i < left_out.size() && i < kNamed; ++i)
    text += fmt::format("{} {}", i == 0 ? "" : ",", left_out[i]);
  if (left_out.size() > kNamed) text += fmt::format(" and {} more", left_out.size() - kNamed);
  return text;
}

/// The end of a note about algorithms that are passed over.
std::string sentence_of(const std::vector<PassedOver>& passed_over) {
  if (passed_over.empty()) return "";
  const PassedOver& first = passed_over.front();
  return fmt::format(
      "{} passed over, since a GPU of this run cannot compile or start {}: {} {} ({}){}",
      passed_over.size() == 1 ? "one algorithm was" : fmt::format("{} algorithms were", passed_over.size()),
      passed_over.size() == 1 ? "it" : "them", first.algorithm, first.why, first.problem,
      passed_over.size() == 1 ? "" : fmt::format(" and {} more", passed_over.size() - 1));
}

[[noreturn]] void fail_without_algorithm(const std::string& problem,
                                         const std::vector<PassedOver>& passed_over) {
  const auto last =
      std::ranges::find(passed_over.rbegin(), passed_over.rend(), problem, &PassedOver::problem);
  base::fail(
      base::ErrorKind::device,
      "--device cuda: no algorithm of cuDNN for {} can be started on this GPU{}; install a newer driver, or give "
      "this process a larger part of the GPU (MIG, MPS)",
      problem, last == passed_over.rend() ? "" : fmt::format(": {} {}", last->algorithm, last->why));
}

}  // namespace

ConvolutionTimer::ConvolutionTimer(Runtime& runtime)
    : runtime_(runtime),
      stream_(runtime.make_stream()),
      begin_(runtime.make_timed_event()),
      end_(runtime.make_timed_event()) {}

ConvolutionTimer::Sizes ConvolutionTimer::Sizes::of(const ConvProblem& problem) {
  const auto size = static_cast<std::size_t>(bytes_of(problem.precision));
  const auto bytes = [&](std::int64_t elements) { return static_cast<std::size_t>(elements) * size; };
  return {.src = bytes(problem.src_elements()),
          .dst = bytes(problem.dst_elements()),
          .weight = bytes(problem.weight_elements())};
}

ConvolutionTimer::Sizes ConvolutionTimer::Sizes::largest(std::span<const ConvProblem> problems) {
  Sizes most;
  for (const ConvProblem& problem : problems) {
    const Sizes one = of(problem);
    for (const auto of_operand : {&Sizes::src, &Sizes::dst, &Sizes::weight})
      most.*of_operand = std::max(most.*of_operand, one.*of_operand);
  }
  return most;
}

void ConvolutionTimer::reserve(std::span<const ConvProblem> problems) {
  const Sizes most = Sizes::largest(problems);
  for (const auto& [block, bytes] :
       {std::pair(&src_, most.src), std::pair(&dst_, most.dst), std::pair(&weight_, most.weight)})
    static_cast<void>(at_least(*block, bytes));
}

std::size_t ConvolutionTimer::most_bytes(std::span<const ConvProblem> problems, std::size_t workspace) {
  const Sizes most = Sizes::largest(problems);
  // Workspaces that have become too small stay allocated. Their sizes are different powers of two, so all of
  // them together take less than twice the largest.
  return 2 * workspace + allocated_bytes(most.src) + allocated_bytes(most.dst) + allocated_bytes(most.weight);
}

std::byte* ConvolutionTimer::at_least(Block& block, std::size_t bytes) {
  if (bytes <= block.bytes) return block.first;
  // Earlier blocks are freed only with the runtime. The size doubles each time, so that they take at most as
  // much again.
  block.bytes = std::max(bytes, 2 * block.bytes);
  block.first = runtime_.allocate(block.bytes);
  runtime_.fill_bytes(stream_, block.first, kByte, block.bytes);
  return block.first;
}

double ConvolutionTimer::seconds_of(Convolution& convolution, const ConvOperands& operands) {
  runtime_.record(begin_, stream_);
  for (int run = 0; run < kRunsOfRound; ++run) convolution.run(stream_, operands);
  runtime_.record(end_, stream_);
  runtime_.synchronize(end_);
  return runtime_.seconds_between(begin_, end_) / kRunsOfRound;
}

ConvOperands ConvolutionTimer::operands_of(const ConvProblem& problem, std::size_t workspace_bytes) {
  const Sizes sizes = Sizes::of(problem);
  return {.src = at_least(src_, sizes.src),
          .dst = at_least(dst_, sizes.dst),
          .weight = at_least(weight_, sizes.weight),
          .workspace = workspace_bytes > 0
                           ? at_least(workspace_, std::bit_ceil(allocated_bytes(workspace_bytes)))
                           : nullptr};
}

std::optional<std::string> ConvolutionTimer::why_not_started(const ConvProblem& problem,
                                                             const std::string& algorithm) {
  const auto convolution = runtime_.make_convolution(problem, algorithm);
  if (!convolution->is_untried()) return std::nullopt;
  try {
    convolution->run(stream_, operands_of(problem, convolution->workspace_bytes()));
  } catch (const AlgorithmRefused& refused) {
    return refused.why();
  }
  runtime_.synchronize(stream_);
  return std::nullopt;
}

MeasuredConvolution ConvolutionTimer::measure(const ConvProblem& problem) {
  const ConvCandidates candidates = runtime_.convolution_candidates(problem);
  MeasuredConvolution measured{.left_out = candidates.left_out};
  std::vector<std::unique_ptr<Convolution>> convolutions;
  std::size_t workspace = 0;
  for (const std::string& algorithm : candidates.algorithms) {
    convolutions.push_back(runtime_.make_convolution(problem, algorithm));
    workspace = std::max(workspace, convolutions.back()->workspace_bytes());
  }
  const ConvOperands operands = operands_of(problem, workspace);
  std::erase_if(convolutions, [&](const auto& convolution) {
    try {
      convolution->run(stream_, operands);  // loads the kernels
      return false;
    } catch (const AlgorithmRefused& refused) {
      measured.passed_over.push_back({describe(problem), convolution->algorithm(), refused.why()});
      return true;
    }
  });
  if (convolutions.empty()) fail_without_algorithm(describe(problem), measured.passed_over);
  std::vector<std::vector<double>> seconds(convolutions.size());
  const auto begin = base::Clock::now();
  for (int round = 0; round < kRounds; ++round) {
    if (round >= kLeastRounds && base::seconds_since(begin) > kEnough) break;
    for (std::size_t i = 0; i < convolutions.size(); ++i)
      seconds[i].push_back(seconds_of(*convolutions[i], operands));
  }
  for (std::size_t i = 0; i < convolutions.size(); ++i)
    measured.times.push_back({.algorithm = convolutions[i]->algorithm(), .seconds = median(seconds[i])});
  const auto& usual = measured.times.front();
  const auto& fastest = *std::ranges::min_element(measured.times, {}, &MeasuredConvolution::Time::seconds);
  measured.algorithm = fastest.seconds < kClearlyFaster * usual.seconds ? fastest.algorithm : usual.algorithm;
  return measured;
}

namespace {

/// Chooses among the algorithms of each problem of a graph, on one device.
class Chooser {
 public:
  Chooser(const std::vector<ConvChoice>& choices, std::vector<PassedOver> passed_over, Runtime& runtime)
      : runtime_(runtime), facts_(runtime.facts()), passed_over_(std::move(passed_over)) {
    for (const ConvChoice& choice : choices) {
      if (problems_.emplace(describe(choice.problem), choice.problem).second) all_.push_back(choice.problem);
      for (const PassedOver& one : choice.passed_over) pass_over(one);
    }
  }

  /// `algorithm`, or the next candidate if the device cannot start it.
  [[nodiscard]] std::string started(const std::string& problem, const std::string& algorithm) {
    if (!why_not(problem, algorithm)) return algorithm;
    for (const std::string& next : runtime_.convolution_candidates(problems_.at(problem)).algorithms)
      if (!why_not(problem, next)) return next;
    fail_without_algorithm(problem, passed_over_);
  }

  /// Why `algorithm` cannot compute `problem` here; nothing if it can.
  [[nodiscard]] std::optional<std::string> why_not(const std::string& problem, const std::string& algorithm) {
    const auto known = std::ranges::find(passed_over_, PassedOver{problem, algorithm, {}});
    if (known != passed_over_.end()) return known->why;
    try {
      const auto convolution = runtime_.make_convolution(problems_.at(problem), algorithm);
      if (!convolution->is_untried() || !has_room(convolution->workspace_bytes())) return std::nullopt;
      auto why = timer().why_not_started(problems_.at(problem), algorithm);
      if (why) pass_over({problem, algorithm, *why});
      return why;
    } catch (const AlgorithmRefused& refused) {
      return refused.why();
    }
  }

  /// The fastest algorithm of each of `problems`; none of them if the device has too little memory.
  [[nodiscard]] KernelAlgorithms measure(const std::vector<std::string>& problems) {
    KernelAlgorithms found;
    if (!has_room(limit())) {
      no_room_ = fmt::format(
          "problems that were not measured before are computed by the usual kernels for their shape: measuring takes "
          "up to {:.2f} GB of the device's memory, and {:.2f} GB are free",
          base::gigabytes(ConvolutionTimer::most_bytes(all_, limit())),
          base::gigabytes(facts_.free_memory_bytes));
      return found;
    }
    for (const std::string& problem : problems) {
      const MeasuredConvolution measured = timer().measure(problems_.at(problem));
      found[problem] = measured.algorithm;
      left_out_.insert(left_out_.end(), measured.left_out.begin(), measured.left_out.end());
      for (const PassedOver& one : measured.passed_over) pass_over(one);
    }
    return found;
  }

  /// What the user should know beside `note`.
  [[nodiscard]] std::string with_notes(std::string note) const {
    if (!note.empty()) note += sentence_of(left_out_, limit());
    for (const std::string& more : {no_room_, sentence_of(passed_over_)})
      if (!more.empty()) note += (note.empty() ? "kernels: " : "; ") + more;
    return note;
  }
  [[nodiscard]] const DeviceFacts& facts() const { return facts_; }
  [[nodiscard]] const std::vector<PassedOver>& passed_over() const { return passed_over_; }

 private:
  [[nodiscard]] std::size_t limit() const { return workspace_limit(facts_.memory_bytes); }
  /// Whether the timer's operands fit beside `workspace`. This memory is freed with the runtime before the
  /// run allocates any, so no memory plan counts it.
  [[nodiscard]] bool has_room(std::size_t workspace) const {
    return !facts_.is_gpu ||
           std::cmp_less_equal(ConvolutionTimer::most_bytes(all_, workspace), facts_.free_memory_bytes);
  }
  /// One for all problems, since each would allocate its own memory.
  ConvolutionTimer& timer() {
    if (!timer_) timer_.emplace(runtime_).reserve(all_);
    return *timer_;
  }
  void pass_over(const PassedOver& one) {
    if (std::ranges::find(passed_over_, one) == passed_over_.end()) passed_over_.push_back(one);
  }

  Runtime& runtime_;
  const DeviceFacts facts_;                      ///< before the timer allocates memory
  std::map<std::string, ConvProblem> problems_;  ///< by their names
  std::vector<ConvProblem> all_;
  std::optional<ConvolutionTimer> timer_;
  std::vector<PassedOver> passed_over_;
  std::vector<std::string> left_out_;
  std::string no_room_;
};

}  // namespace

PreparedKernels prepare(const graph::Graph& graph, const CompileOptions& options,
                        const KernelRequest& request, Runtime& runtime) {
  CompileOptions by_default = options;
  by_default.algorithms = nullptr;
  // Keeps its convolutions until the choice is made, so that plans which are requested again need not be made
  // again.
  const Program program(graph, by_default, runtime);
  const std::vector<ConvChoice> choices = program.convolutions();
  Chooser chooser(choices, request.passed_over, runtime);
  KernelProblems named{
      .chosen_by = chooser.facts().is_gpu ? "heuristics" : "rules", .defaults = {}, .refusal = {}};
  for (const ConvChoice& choice : choices) {
    auto& algorithm = named.defaults[describe(choice.problem)];
    if (algorithm.empty()) algorithm = chooser.started(describe(choice.problem), choice.algorithm);
  }
  named.refusal = [&](const std::string& problem, const std::string& algorithm) {
    return chooser.why_not(problem, algorithm);
  };
  PreparedKernels prepared = choose_kernels(
      named, request,
      {.open_cache =
           [&] {
             // Only the device knows its algorithms; choose_kernels() does not take what it refuses.
             return KernelCache(base::cache_directory(), machine_of(chooser.facts()),
                                [](const auto&) { return true; });
           },
       .measure = [&](const std::vector<std::string>& problems) { return chooser.measure(problems); },
       .portion = kPortion});
  prepared.note = chooser.with_notes(std::move(prepared.note));
  prepared.passed_over = chooser.passed_over();
  return prepared;
}

AutoPrecision auto_precision(int compute_capability) {
  if (has_bf16_units(compute_capability))
    return {Precision::bf16, "GPUs from compute capability 8.0 on have units for it"};
  return {Precision::f32,
          fmt::format("a GPU of compute capability {}.{} has no units for bf16, which begin with 8.0",
                      compute_capability / 10, compute_capability % 10)};
}

}  // namespace paceline::engine::cuda
